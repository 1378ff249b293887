//! Fabrics commands: opcode 0x7F on every queue, told apart by their type.

use crate::code::codes;
use crate::command::{Arguments, FABRICS, Sqe};
use crate::layout::layout;
use crate::sgl::Sgl;
use crate::text::Terminated;

codes! {
    /// Fabrics Command Type (FCTYPE), byte 4 of the command.
    pub struct FabricsType(u8) {
        PROPERTY_SET = 0x00 "Property Set",
        CONNECT = 0x01 "Connect",
        PROPERTY_GET = 0x04 "Property Get",
        AUTHENTICATION_SEND = 0x05 "Authentication Send",
        AUTHENTICATION_RECEIVE = 0x06 "Authentication Receive",
        DISCONNECT = 0x08 "Disconnect",
    }
}

/// CNTLID of a Connect command to a controller that the target shall choose.
pub const DYNAMIC_CONTROLLER: u16 = 0xFFFF;

layout! {
    /// Arguments of every Fabrics command.
    pub struct Fabrics [64] {
        /// Fabrics Command Type (FCTYPE).
        4 fctype: FabricsType,
    }

    /// Arguments of Connect; its data are a [`ConnectData`].
    pub struct Connect [64] {
        /// Record Format (RECFMT): 0.
        40 recfmt: u16,
        /// Queue ID (QID): 0 is the admin queue.
        42 qid: u16,
        /// Submission Queue Size (SQSIZE), 0-based.
        44 sqsize: u16,
        /// Connect Attributes (CATTR) 1:0: priority class.
        46[0..=1] priority: u8,
        /// CATTR 2: disable SQ flow control; completions carry no SQHD.
        46[2..=2] no_flow_control: bool,
        /// CATTR 3: individual I/O queue deletion is supported.
        46[3..=3] queue_deletion: bool,
        /// Keep Alive Timeout (KATO) in milliseconds; admin queue only, 0 disables.
        48 kato: u32,
    }

    /// Data of Connect, 1024 bytes.
    pub struct ConnectData [1024] {
        /// Host Identifier (HOSTID).
        0 hostid: [u8; 16],
        /// Controller ID (CNTLID): [`DYNAMIC_CONTROLLER`], or the controller that an I/O queue belongs to.
        16 cntlid: u16,
        /// NVM Subsystem NVMe Qualified Name (SUBNQN).
        256 subnqn: Terminated<256>,
        /// Host NVMe Qualified Name (HOSTNQN).
        512 hostnqn: Terminated<256>,
    }

    /// Result of a successful Connect: bytes 7:0 of the completion.
    pub struct ConnectResult [8] {
        /// Controller ID (CNTLID) that was granted.
        0 cntlid: u16,
        /// Authentication Requirements (AUTHREQ) 1: Authentication Transaction Required.
        2[1..=1] atr: bool,
        /// AUTHREQ 2: Authentication and Secure Channel Required.
        2[2..=2] ascr: bool,
    }

    /// Result of Connect that ended with Connect Invalid Parameters.
    pub struct InvalidParameter [8] {
        /// Invalid Parameter Offset (IPO): the byte where the bad parameter starts.
        0 ipo: u16,
        /// Invalid Attributes (IATTR) 0: the offset counts in the data; otherwise in the command.
        2[0..=0] in_data: bool,
    }

    /// Arguments of Property Get; the value is in bytes 7:0 of the completion.
    pub struct PropertyGet [64] {
        /// Attributes (ATTRIB) 2:0, size of the property: 0 is 4 bytes, 1 is 8.
        40[0..=2] size: u8,
        /// Offset (OFST) of the property.
        44 offset: u32,
    }

    /// Arguments of Property Set.
    pub struct PropertySet [64] {
        /// Attributes (ATTRIB) 2:0, size of the property: 0 is 4 bytes, 1 is 8.
        40[0..=2] size: u8,
        /// Offset (OFST) of the property.
        44 offset: u32,
        /// Value (VALUE).
        48 value: u64,
    }
}

impl Arguments for Fabrics {}
impl Arguments for Connect {}
impl Arguments for PropertyGet {}
impl Arguments for PropertySet {}

impl Fabrics {
    /// A Fabrics command with this type, data and arguments.
    pub fn command<C: Arguments>(fctype: FabricsType, sgl: Sgl, arguments: &C) -> Sqe {
        Sqe { opcode: FABRICS, ..Sqe::fabric(sgl) }.with(&Fabrics { fctype }).with(arguments)
    }
}

macro_rules! results {
    ($($name:ident)*) => {$(
        impl From<u64> for $name {
            fn from(result: u64) -> Self {
                $name::parse(&result.to_le_bytes())
            }
        }

        impl From<$name> for u64 {
            fn from(result: $name) -> u64 {
                u64::from_le_bytes(result.to_bytes())
            }
        }
    )*};
}
results!(ConnectResult InvalidParameter);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn connect_is_the_bytes_of_the_specification() {
        let connect =
            Connect { qid: 1, sqsize: 127, no_flow_control: true, kato: 10_000, ..Connect::default() };
        let bytes = Fabrics::command(FabricsType::CONNECT, Sgl::keyed(0x1000, 1024, 7), &connect).to_bytes();
        let mut expected = [0; 64];
        (expected[0], expected[1], expected[4]) = (0x7F, 0x40, 0x01);
        expected[24..40].copy_from_slice(&[0, 0x10, 0, 0, 0, 0, 0, 0, 0, 4, 0, 7, 0, 0, 0, 0x40]);
        expected[40..52].copy_from_slice(&[0, 0, 1, 0, 127, 0, 0b100, 0, 0x10, 0x27, 0, 0]);
        assert_eq!(bytes, expected);
        assert_eq!(Sqe::parse(&bytes).get::<Connect>(), connect);
        assert_eq!(Sqe::parse(&bytes).get::<Fabrics>().fctype, FabricsType::CONNECT);
    }

    #[test]
    fn properties_are_the_bytes_of_the_specification() {
        let set = PropertySet { size: 0, offset: 0x14, value: 0x0046_0001 };
        let bytes = Fabrics::command(FabricsType::PROPERTY_SET, Sgl::none(), &set).to_bytes();
        assert_eq!(
            (bytes[4], &bytes[40..56]),
            (0, [0, 0, 0, 0, 0x14, 0, 0, 0, 1, 0, 0x46, 0, 0, 0, 0, 0].as_slice())
        );
        let get = PropertyGet { size: 1, offset: 0 };
        let bytes = Fabrics::command(FabricsType::PROPERTY_GET, Sgl::none(), &get).to_bytes();
        assert_eq!((bytes[4], bytes[40], bytes[39]), (4, 1, 0x40));
    }

    #[test]
    fn results_name_the_place() {
        assert_eq!(Connect::offset("sqsize"), Some(44));
        let wrong = InvalidParameter { ipo: ConnectData::offset("subnqn").unwrap(), in_data: true };
        assert_eq!(u64::from(wrong.clone()), 0x1_0100);
        assert_eq!(InvalidParameter::from(0x1_0100), wrong);
        assert_eq!(ConnectResult::from(0x2_0005), ConnectResult { cntlid: 5, atr: true, ascr: false });
    }

    #[test]
    fn connect_data_have_names_at_256_and_512() {
        let data = ConnectData {
            hostid: [7; 16],
            cntlid: DYNAMIC_CONTROLLER,
            subnqn: Terminated::new("nqn.a").unwrap(),
            hostnqn: Terminated::new("nqn.b").unwrap(),
        };
        let bytes = data.to_bytes();
        assert_eq!(
            (&bytes[..18], &bytes[256..262], &bytes[512..518]),
            (
                [[7; 16].as_slice(), &[0xFF; 2]].concat().as_slice(),
                b"nqn.a\0".as_slice(),
                b"nqn.b\0".as_slice()
            )
        );
    }
}
