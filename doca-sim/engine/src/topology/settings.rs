//! How one table of fields becomes a struct and the patch that a file may apply to it.
//!
//! A topology file never has to be complete: each object in it is a *patch*. The fields it names replace
//! those of what it builds on, the others stay.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Something that a part of the topology file can change.
pub(super) trait Patched {
    /// What the file says about it.
    type Patch: DeserializeOwned + Default;

    /// Takes over what the file says.
    fn apply(&mut self, patch: Self::Patch);
}

/// A plain value in the file: absent, or set (also to `null`, where the type has a null).
#[derive(Default)]
pub(super) enum Set<T> {
    #[default]
    Absent,
    To(T),
}

impl<T> Set<T> {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Set::Absent)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Set::To)
    }
}

/// A JSON object, and nothing else: derived code also takes the fields of a struct as a list.
#[derive(Default)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Makes types that a file replaces as a whole patchable.
macro_rules! plain {
    ($($ty:ty),* $(,)?) => { $(
        impl $crate::topology::settings::Patched for $ty {
            type Patch = $crate::topology::settings::Set<$ty>;

            fn apply(&mut self, patch: Self::Patch) {
                if let $crate::topology::settings::Set::To(value) = patch {
                    *self = value;
                }
            }
        }
    )* };
}

impl<T: DeserializeOwned> Patched for Vec<T> {
    type Patch = Set<Vec<Object<T>>>;

    fn apply(&mut self, patch: Self::Patch) {
        if let Set::To(list) = patch {
            *self = list.into_iter().map(|Object(element)| element).collect();
        }
    }
}

impl<T: DeserializeOwned> Patched for Option<Vec<T>> {
    type Patch = Set<Option<Vec<Object<T>>>>;

    fn apply(&mut self, patch: Self::Patch) {
        if let Set::To(list) = patch {
            *self = list.map(|list| list.into_iter().map(|Object(element)| element).collect());
        }
    }
}

/// Declares a struct whose fields can be set in the file, with their defaults. Fields under `given` follow
/// from elsewhere.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident, patched by $patch:ident
        $(, given { $( $(#[$gmeta:meta])* $given:ident: $gty:ty = $gdefault:expr, )* })?
        {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ty = $default:expr, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $( $(#[$gmeta])* pub $given: $gty, )* )?
            $( $(#[$fmeta])* pub $field: $ty, )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $( $given: $gdefault, )* )? $( $field: $default, )* }
            }
        }

        #[derive(Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct $patch {
            $( $field: <$ty as $crate::topology::settings::Patched>::Patch, )*
        }

        impl $crate::topology::settings::Patched for $name {
            type Patch = $crate::topology::settings::Object<$patch>;

            fn apply(&mut self, patch: Self::Patch) {
                let patch = patch.0;
                $( $crate::topology::settings::Patched::apply(&mut self.$field, patch.$field); )*
            }
        }
    };
}

pub(super) use {plain, settings};

plain!(bool, u8, u16, u32, u64, String);
