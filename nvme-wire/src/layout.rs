//! How a structure of the specifications becomes a Rust type: one table per structure, `offset [bits] name: type`, from
//! which come the fields, both directions of conversion and the list of fields.

/// A value that fills whole bytes of a structure. All numbers are little endian.
pub trait Wire: Sized {
    /// How many bytes.
    const LEN: usize;

    /// Reads from exactly [`Wire::LEN`] bytes.
    fn get(bytes: &[u8]) -> Self;

    /// Writes exactly [`Wire::LEN`] bytes.
    fn put(&self, bytes: &mut [u8]);
}

/// A value that fills some bits of a structure.
pub trait Bits: Copy {
    /// From the low bits of a number, the rest of which is 0.
    fn from_bits(bits: u64) -> Self;

    /// As the low bits of a number.
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Wire for $t {
            const LEN: usize = size_of::<$t>();
            fn get(bytes: &[u8]) -> Self {
                let mut all = [0; size_of::<$t>()];
                all.copy_from_slice(bytes);
                <$t>::from_le_bytes(all)
            }
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64 u128);

macro_rules! bit_numbers {
    ($($t:ty)*) => {$(
        impl Bits for $t {
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
            fn bits(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
bit_numbers!(u8 u16 u32 u64);

impl Bits for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    const LEN: usize = N * T::LEN;
    fn get(bytes: &[u8]) -> Self {
        std::array::from_fn(|i| T::get(&bytes[i * T::LEN..(i + 1) * T::LEN]))
    }
    fn put(&self, bytes: &mut [u8]) {
        for (value, bytes) in self.iter().zip(bytes.chunks_exact_mut(T::LEN)) {
            value.put(bytes);
        }
    }
}

/// The bytes that bits `..=high` of a field touch, as a number.
fn load(bytes: &[u8], high: u32) -> u64 {
    let mut all = [0; 8];
    let len = high as usize / 8 + 1;
    all[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(all)
}

const fn mask(low: u32, high: u32) -> u64 {
    u64::MAX >> (63 - (high - low))
}

pub(crate) fn get_bits<T: Bits>(bytes: &[u8], low: u32, high: u32) -> T {
    T::from_bits(load(bytes, high) >> low & mask(low, high))
}

pub(crate) fn put_bits<T: Bits>(value: T, bytes: &mut [u8], low: u32, high: u32) {
    let (value, mask) = (value.bits(), mask(low, high));
    debug_assert_eq!(value & !mask, 0, "the value has more than {} bits", high - low + 1);
    let all = load(bytes, high) & !(mask << low) | (value & mask) << low;
    bytes[..=high as usize / 8].copy_from_slice(&all.to_le_bytes()[..=high as usize / 8]);
}

/// Where a field stands in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name in the Rust type.
    pub name: &'static str,
    /// Byte offset.
    pub offset: usize,
    /// First and last bit, counted from bit 0 of the byte at `offset`.
    pub bits: (u32, u32),
}

/// Fewer bytes than the structure has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {need} bytes, here are {have}")]
pub struct Short {
    /// The structure.
    pub what: &'static str,
    /// Its length in bytes.
    pub need: usize,
    /// The length that was given.
    pub have: usize,
}

/// A structure with a table of fields. Bytes that no field covers are reserved: ignored when read, and when written
/// into zeroed memory they stay 0.
pub trait Layout: Wire + Default {
    /// The name in the Rust code.
    const NAME: &'static str;
    /// The fields, by offset.
    const FIELDS: &'static [Field];

    /// Reads it from the beginning of some bytes.
    fn read(bytes: &[u8]) -> Result<Self, Short> {
        let have = bytes.len();
        match bytes.get(..Self::LEN) {
            Some(bytes) => Ok(Self::get(bytes)),
            None => Err(Short { what: Self::NAME, need: Self::LEN, have }),
        }
    }

    /// The byte offset of a field, as error responses name it (IPO, Parameter Error Location). `None`: there is no such field.
    fn offset(field: &str) -> Option<u16> {
        let found = Self::FIELDS.iter().find(|known| known.name == field)?;
        u16::try_from(found.offset + found.bits.0 as usize / 8).ok()
    }
}

macro_rules! field {
    (get $t:ty, $bytes:ident, $at:literal) => {
        <$t as $crate::layout::Wire>::get(&$bytes[$at..$at + <$t as $crate::layout::Wire>::LEN])
    };
    (get $t:ty, $bytes:ident, $at:literal $low:literal $high:literal) => {
        $crate::layout::get_bits::<$t>(&$bytes[$at..], $low, $high)
    };
    (put $t:ty, $value:expr, $bytes:ident, $at:literal) => {
        <$t as $crate::layout::Wire>::put(&$value, &mut $bytes[$at..$at + <$t as $crate::layout::Wire>::LEN])
    };
    (put $t:ty, $value:expr, $bytes:ident, $at:literal $low:literal $high:literal) => {
        $crate::layout::put_bits::<$t>($value, &mut $bytes[$at..], $low, $high)
    };
    (bits $t:ty) => {
        (0, <$t as $crate::layout::Wire>::LEN as u32 * 8 - 1)
    };
    (bits $t:ty, $low:literal $high:literal) => {
        ($low, $high)
    };
}
pub(crate) use field;

macro_rules! layout {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident [$len:literal] {
            $($(#[$field_doc:meta])* $at:literal $([$low:literal ..= $high:literal])? $field:ident: $t:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $t,)*
        }

        impl $crate::layout::Wire for $name {
            const LEN: usize = $len;
            fn get(bytes: &[u8]) -> Self {
                $name { $($field: $crate::layout::field!(get $t, bytes, $at $($low $high)?),)* }
            }
            fn put(&self, bytes: &mut [u8]) {
                $($crate::layout::field!(put $t, self.$field, bytes, $at $($low $high)?);)*
            }
        }

        impl $crate::layout::Layout for $name {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::layout::Field] = &[$($crate::layout::Field {
                name: stringify!($field),
                offset: $at,
                bits: $crate::layout::field!(bits $t $(, $low $high)?),
            },)*];
        }

        impl Default for $name {
            fn default() -> Self {
                Self::parse(&[0; $len])
            }
        }

        impl $name {
            /// Length in bytes.
            pub const LEN: usize = $len;

            /// Reads the structure; reserved bytes are ignored.
            pub fn parse(bytes: &[u8; $len]) -> Self {
                <Self as $crate::layout::Wire>::get(bytes)
            }

            /// The bytes of the structure; reserved ones are 0.
            pub fn to_bytes(&self) -> [u8; $len] {
                let mut bytes = [0; $len];
                $crate::layout::Wire::put(self, &mut bytes);
                bytes
            }
        }

    )*
        /// Every table is in order, inside its structure, and loses no bit.
        #[cfg(test)]
        mod layouts {
            #[test]
            fn tables() {
                $($crate::layout::check::<super::$name>();)*
            }
        }
    };
}
pub(crate) use layout;

#[cfg(test)]
pub(crate) fn check<L: Layout + PartialEq + std::fmt::Debug>() {
    let mut end = 0;
    for field in L::FIELDS {
        let (first, last) =
            (field.offset * 8 + field.bits.0 as usize, field.offset * 8 + field.bits.1 as usize);
        assert!(first >= end && last >= first, "{}.{} overlaps what stands before it", L::NAME, field.name);
        end = last + 1;
    }
    assert!(end <= L::LEN * 8, "{} is longer than {} bytes", L::NAME, L::LEN);
    let mut covered = vec![0; L::LEN];
    let ones = L::get(&vec![0xFF; L::LEN]);
    ones.put(&mut covered);
    for field in L::FIELDS {
        let at = |bit: u32| field.offset * 8 + bit as usize;
        // Longer ones hold structures, which may have reserved bits of their own.
        let last = if field.bits.1 < 64 { field.bits.1 } else { 0 };
        for bit in at(field.bits.0)..=at(last) {
            assert_ne!(covered[bit / 8] >> (bit % 8) & 1, 0, "{}.{} loses bit {bit}", L::NAME, field.name);
        }
    }
    assert_eq!(L::get(&covered), ones, "{}", L::NAME);
    let have = L::LEN - 1;
    assert_eq!(L::read(&vec![0; have]), Err(Short { what: L::NAME, need: L::LEN, have }));
}

#[cfg(test)]
mod tests {
    use super::*;

    layout! {
        /// Bits within a byte, across bytes, and whole bytes.
        pub struct Sample [8] {
            /// One bit.
            0[1..=1] flag: bool,
            /// Across a byte boundary.
            0[6..=9] across: u8,
            /// Whole bytes after a reserved one.
            4 word: u16,
        }
    }

    #[test]
    fn fields_stand_where_the_table_says() {
        let sample = Sample { flag: true, across: 0b1001, word: 0x1234 };
        assert_eq!(Sample::LEN, 8);
        assert_eq!(sample.to_bytes(), [0b0100_0010, 0b10, 0, 0, 0x34, 0x12, 0, 0]);
        assert_eq!(Sample::parse(&[0b0100_0010, 0xFE, 9, 9, 0x34, 0x12, 9, 9]), sample);
        assert_eq!(
            (Sample::offset("word"), Sample::offset("across"), Sample::offset("none")),
            (Some(4), Some(0), None)
        );
    }

    #[test]
    fn writing_leaves_the_bytes_of_others() {
        let mut bytes = [0xFF; 8];
        Sample::default().put(&mut bytes);
        assert_eq!(bytes, [0b0011_1101, 0b1111_1100, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    }
}
