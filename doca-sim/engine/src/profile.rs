//! Profiles: readings of DOCA where its real behaviour is unknown or differs by release.
//!
//! `DOCA_SIM_PROFILE` names them, separated by commas. Without it, the simulator follows NVIDIA's guidance.

use crate::environment;
use std::sync::OnceLock;

macro_rules! profiles {
    ($($(#[$meta:meta])* $field:ident $name:literal;)*) => {
        /// Which profiles are on.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Profiles { $($(#[$meta])* pub $field: bool,)* }

        impl Profiles {
            /// The names, for messages.
            pub const NAMES: &[&str] = &[$($name,)*];

            fn parse(list: &str) -> Result<Self, &str> {
                let mut profiles = Self::default();
                for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    match name {
                        $($name => profiles.$field = true,)*
                        unknown => return Err(unknown),
                    }
                }
                Ok(profiles)
            }
        }
    };
}

profiles! {
    /// An access that the target refuses fails with IO_FAILED, as hardware completion errors do elsewhere in DOCA,
    /// instead of NOT_PERMITTED.
    refused_io_failed "refused-io-failed";
    /// As in DOCA 2.x, a started RDMA context stays STARTING until its first connection is made.
    starting_until_connected "starting-until-connected";
    /// The RUNNING callback comes from the next progress instead of from start.
    callbacks_in_progress "callbacks-in-progress";
    /// While an engine in selective mode is armed, progress does nothing until the event.
    selective_quirk "selective-quirk";
    /// Stopping a context that is IDLE fails with BAD_STATE, as the state machine of contexts says.
    stop_idle_bad_state "stop-idle-bad-state";
    /// Who disconnects is not told of the disconnection.
    disconnect_not_told_to_initiator "disconnect-not-told-to-initiator";
    /// A task that fails takes its RDMA context to STOPPING, and not only the connection down.
    failed_task_stops_context "failed-task-stops-context";
    /// Tasks that are flushed by stop or with their connection end with SHUTDOWN instead of IO_FAILED.
    flushed_shutdown "flushed-shutdown";
    /// A full send queue answers AGAIN instead of FULL.
    full_is_again "full-is-again";
    /// A memory map that was exported or imported cannot be stopped, as the reference says.
    exported_mmap_not_stoppable "exported-mmap-not-stoppable";
    /// Buffers can be taken from an inventory that was never started, as programs are seen to do on hardware.
    inventory_needs_no_start "inventory-needs-no-start";
    /// Contexts of storage targets are RUNNING when start returns.
    sta_start_at_once "sta-start-at-once";
    /// Subsystems and back ends are set up before the storage target starts, and only then.
    sta_setup_idle "sta-setup-idle";
    /// They are set up before or after the start.
    sta_setup_any "sta-setup-any";
    /// A queue pair of a storage target knows no administration: whatever looks like a read or a write is served as one.
    sta_no_admin_qp "sta-no-admin-qp";
    /// Every third submit of a storage target's tasks meets another one at its execution unit: AGAIN.
    sta_again_contention "sta-again-contention";
    /// A queue pair of a storage target takes four tasks, and then AGAIN until its unit has looked at them.
    sta_again_budget "sta-again-budget";
    /// A Comch peer that dies is noticed at once.
    comch_death_prompt "comch-death-prompt";
    /// A Comch peer that dies is noticed a while later, without a send.
    comch_death_late "comch-death-late";
    /// A buffer that a Comch consumer posts can be used when its own control path has been progressed.
    comch_credits_consumer_side "comch-credits-consumer-side";
    /// A buffer that a Comch consumer posts can be used when the control paths of both sides have been progressed.
    comch_credits_both_sides "comch-credits-both-sides";
    /// A Comch consumer whose progress engine is armed while it is starting never becomes RUNNING.
    comch_lost_consumer_start "comch-lost-consumer-start";
    /// A Comch server that disconnects a client is told of the disconnection, too.
    comch_disconnect_told "comch-disconnect-told";
    /// Bytes that change while a task reads them are told of: see `strict`.
    strict "strict";
}

/// The profiles of this process; none where [`check`] fails.
pub fn get() -> Profiles {
    load().as_ref().copied().unwrap_or_default()
}

/// What is wrong with the list: to be asked before devices are shown. A program that runs under another reading than it
/// names would test nothing.
pub fn check() -> Result<(), String> {
    load().as_ref().map(|_| ()).map_err(String::clone)
}

fn load() -> &'static Result<Profiles, String> {
    static PROFILES: OnceLock<Result<Profiles, String>> = OnceLock::new();
    PROFILES.get_or_init(|| {
        let list = std::env::var("DOCA_SIM_PROFILE").unwrap_or_default();
        let profiles = Profiles::parse(&list).map_err(|unknown| {
            format!("DOCA_SIM_PROFILE: unknown profile '{unknown}'; known are {}", Profiles::NAMES.join(", "))
        })?;
        let asked = std::env::var_os(environment::STRICT).is_some_and(|value| value == "1");
        Ok(Profiles { strict: profiles.strict || asked, ..profiles })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_described_for_users() {
        let text = include_str!("../../PROFILES.md");
        let described: Vec<&str> =
            text.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        let mut missing = Profiles::NAMES.iter().filter(|name| !described.contains(name));
        assert_eq!(missing.next(), None);
    }

    #[test]
    fn lists_are_read_and_nonsense_is_named() {
        assert_eq!(Profiles::parse(""), Ok(Profiles::default()));
        assert!(Profiles::parse(" refused-io-failed ,").is_ok_and(|p| p.refused_io_failed));
        assert_eq!(Profiles::parse("refused-io-failed,nonsense"), Err("nonsense"));
    }
}
