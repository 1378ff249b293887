//! The SDK's own log. (Backends and levels follow; until then, messages go to stderr.)

macro_rules! error { ($($a:tt)*) => { $crate::log::sdk(30, file!(), line!(), module_path!(), format_args!($($a)*)) } }
macro_rules! warning { ($($a:tt)*) => { $crate::log::sdk(40, file!(), line!(), module_path!(), format_args!($($a)*)) } }
macro_rules! info { ($($a:tt)*) => { $crate::log::sdk(50, file!(), line!(), module_path!(), format_args!($($a)*)) } }
macro_rules! debug { ($($a:tt)*) => { $crate::log::sdk(60, file!(), line!(), module_path!(), format_args!($($a)*)) } }
macro_rules! trace { ($($a:tt)*) => { $crate::log::sdk(70, file!(), line!(), module_path!(), format_args!($($a)*)) } }
pub(crate) use {debug, error, info, trace, warning};

/// Hands one SDK message to the backends that want it. Costs one relaxed load when nobody does.
pub(crate) fn sdk(level: u32, file: &str, line: u32, module: &str, text: std::fmt::Arguments<'_>) {
    let _ = module;
    if level <= 40 {
        eprintln!("[{level}][{file}:{line}] {text}");
    }
}
