//! `doca_argp.h`: the command-line parser.

use crate::argp::{
    self, CallLogger, Command, ConfigCallback, DpdkCallback, Handle, Kind, Logger, Param, ParamCallback,
};
use crate::code::Code;
use crate::entry;
use crate::entry::{In, Out, Text};
use crate::log::Limit;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A text that may be absent; bytes that are no UTF-8 are replaced.
fn text(text: &Text) -> Option<String> {
    text.get().ok().map(|text| text.to_string_lossy().into_owned())
}

/// The words of `main`, or INVALID_VALUE for none and for a NULL among them.
fn words(argc: c_int, argv: &In<*const c_char>) -> Result<Vec<&CStr>, Code> {
    let count = usize::try_from(argc).map_err(|_| Code::INVALID_VALUE)?;
    if argv.raw().is_null() || count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not NULL, and the C function asks for an array of `argc` pointers.
    let words = unsafe { std::slice::from_raw_parts(argv.raw(), count) };
    let word = |word: &*const c_char| {
        // SAFETY: not NULL where it is called, and the words of `main` are NUL-terminated.
        (!word.is_null()).then(|| unsafe { CStr::from_ptr(*word) }).ok_or(Code::INVALID_VALUE)
    };
    words.iter().map(word).collect()
}

entry! {
    /// Prints the help text to stdout.
    fn doca_argp_usage() -> () = (); {
        if argp::usage().is_err() {
            crate::log::error!("doca_argp_usage: the parser is not initialized");
        }
    }

    /// Makes the parser. Both arguments may be NULL.
    fn doca_argp_init(program_name: Text, program_config: Out<c_void>) {
        argp::init(program_name.get().ok(), program_config.raw())
    }

    /// Declares a flag of the program.
    fn doca_argp_register_param(input_param: In<Handle<Param>>) {
        argp::register_param(&input_param)
    }

    /// Declares a command of the program.
    fn doca_argp_register_cmd(input_cmd: In<Handle<Command>>) {
        argp::register_command(&input_cmd)
    }

    /// Sets what `--version` calls.
    fn doca_argp_register_version_callback(callback: Option<ParamCallback>) {
        argp::set_version(callback)
    }

    /// Sets what is called when parsing is over.
    fn doca_argp_register_validation_callback(callback: Option<ConfigCallback>) {
        argp::set_validation(callback)
    }

    /// Sets what gets messages to the user, and how C calls it.
    fn doca_argp_register_logger_callback(callback: Option<Logger>, call: CallLogger) {
        argp::set_logger(callback, call)
    }

    /// Sends messages to the user to stderr again.
    fn doca_argp_disable_logger_callback() {
        argp::unset_logger()
    }

    /// Reads a command line, and calls what it names.
    fn doca_argp_start(argc: c_int, argv: In<*const c_char>) {
        argp::start(&words(argc, &argv)?)
    }

    /// Ends the parser.
    fn doca_argp_destroy() {
        argp::destroy()
    }

    /// Makes this a DPDK program.
    fn doca_argp_set_dpdk_program(callback: Option<DpdkCallback>) -> () = (); {
        if argp::set_dpdk(callback).is_err() {
            crate::log::error!("doca_argp_set_dpdk_program: the parser is not initialized, or started already");
        }
    }

    /// A new flag.
    fn doca_argp_param_create(param: Out<*const Handle<Param>>) {
        param.check()?;
        param.put(argp::create()?)
    }

    /// Names a flag that follows one dash.
    fn doca_argp_param_set_short_name(param: In<Handle<Param>>, name: Text) -> () = (); {
        argp::edit(&param, |param| param.short = text(&name));
    }

    /// Names a flag that follows two dashes, and its key in a file.
    fn doca_argp_param_set_long_name(param: In<Handle<Param>>, name: Text) -> () = (); {
        argp::edit(&param, |param| param.long = text(&name));
    }

    /// Says what the help text shows behind the flag.
    fn doca_argp_param_set_arguments(param: In<Handle<Param>>, arguments: Text) -> () = (); {
        argp::edit(&param, |param| param.arguments = text(&arguments));
    }

    /// Says what the flag is for.
    fn doca_argp_param_set_description(param: In<Handle<Param>>, description: Text) -> () = (); {
        argp::edit(&param, |param| param.description = text(&description));
    }

    /// Sets what the flag calls.
    fn doca_argp_param_set_callback(param: In<Handle<Param>>, callback: Option<ParamCallback>) -> () = (); {
        argp::edit(&param, |param| param.call(callback));
    }

    /// Sets what follows the flag.
    fn doca_argp_param_set_type(param: In<Handle<Param>>, r#type: u32) -> () = (); {
        argp::edit(&param, |param| param.kind = Kind::from_c(r#type));
    }

    /// Refuses command lines without the flag.
    fn doca_argp_param_set_mandatory(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.mandatory = true);
    }

    /// Refuses files with the flag.
    fn doca_argp_param_set_cli_only(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.cli_only = true);
    }

    /// Allows the flag more than once; in a file, an array of values.
    fn doca_argp_param_set_multiplicity(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.multiple = true);
    }

    /// Refuses other flags beside the flag.
    fn doca_argp_param_set_singular(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.singular = true);
    }

    /// Allows the flag after inner commands too.
    fn doca_argp_param_set_inherited(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.inherited = true);
    }

    /// Leaves the flag out of the help text.
    fn doca_argp_param_set_hidden(param: In<Handle<Param>>) -> () = (); {
        argp::edit(&param, |param| param.hidden = true);
    }

    /// Ends a flag that was never declared.
    fn doca_argp_param_destroy(param: In<Handle<Param>>) {
        argp::discard(&param)
    }

    /// A new command.
    fn doca_argp_cmd_create(cmd: Out<*const Handle<Command>>) {
        cmd.check()?;
        cmd.put(argp::create()?)
    }

    /// Names a command.
    fn doca_argp_cmd_set_name(cmd: In<Handle<Command>>, name: Text) -> () = (); {
        argp::edit(&cmd, |cmd| cmd.name = text(&name));
    }

    /// Says what the command is for.
    fn doca_argp_cmd_set_description(cmd: In<Handle<Command>>, description: Text) -> () = (); {
        argp::edit(&cmd, |cmd| cmd.description = text(&description));
    }

    /// Sets what the command calls.
    fn doca_argp_cmd_set_callback(cmd: In<Handle<Command>>, callback: Option<ConfigCallback>) -> () = (); {
        argp::edit(&cmd, |cmd| cmd.callback = callback);
    }

    /// Leaves the command out of the help text.
    fn doca_argp_cmd_set_hidden(cmd: In<Handle<Command>>) -> () = (); {
        argp::edit(&cmd, |cmd| cmd.hidden = true);
    }

    /// Declares a flag of a command.
    fn doca_argp_cmd_register_param(cmd: In<Handle<Command>>, input_param: In<Handle<Param>>) {
        argp::register_param_of(&cmd, &input_param)
    }

    /// Declares a command of a command.
    fn doca_argp_cmd_register_cmd(cmd: In<Handle<Command>>, input_cmd: In<Handle<Command>>) {
        argp::register_command_of(&cmd, &input_cmd)
    }

    /// Ends a command that was never declared.
    fn doca_argp_cmd_destroy(cmd: In<Handle<Command>>) {
        argp::discard(&cmd)
    }

    /// The program's log level.
    fn doca_argp_get_log_level(log_level: Out<c_int>) {
        log_level.put(argp::log_level(Limit::Lower).number().cast_signed())
    }

    /// The SDK's log level.
    fn doca_argp_get_sdk_log_level(log_level: Out<c_int>) {
        log_level.put(argp::log_level(Limit::Sdk).number().cast_signed())
    }
}
