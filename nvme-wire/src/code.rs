//! Numbers with names: one table per set of codes. A number without a name survives.

macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident($t:ty) { $($code:ident = $value:literal $text:literal,)* }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $t);

        impl $name {
            $(#[doc = concat!($text, ".")] pub const $code: $name = $name($value);)*

            /// The codes that have names, in the order of the specification.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$code, $text)),*];

            /// The name in the specification.
            pub fn name(self) -> Option<&'static str> {
                Self::ALL.iter().find(|(code, _)| *code == self).map(|(_, name)| *name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} (0x{:02X})", self.name().unwrap_or("unknown"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl $crate::layout::Wire for $name {
            const LEN: usize = size_of::<$t>();
            fn get(bytes: &[u8]) -> Self {
                $name(<$t as $crate::layout::Wire>::get(bytes))
            }
            fn put(&self, bytes: &mut [u8]) {
                $crate::layout::Wire::put(&self.0, bytes);
            }
        }

        impl $crate::layout::Bits for $name {
            fn from_bits(bits: u64) -> Self {
                $name(bits as $t)
            }
            fn bits(self) -> u64 {
                u64::from(self.0)
            }
        }
    )*};
}
pub(crate) use codes;
