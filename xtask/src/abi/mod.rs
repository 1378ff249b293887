//! `cargo sim abi`: headers and libraries against the tables, both ways.

mod declarations;
mod loader;
mod prefix;
mod symbols;

use crate::Result;
use crate::sdk::Sdk;

/// `cargo sim abi`
pub(crate) fn command(args: &[String]) -> Result {
    match args.first() {
        None => check(&Sdk::ready()?),
        Some(arg) => Err(format!("abi takes no argument, got {arg}")),
    }
}

/// Every check, each with one line about what it saw.
pub(crate) fn check(sdk: &Sdk) -> Result {
    symbols::check(sdk.options())?;
    declarations::check(sdk.options())?;
    loader::check(sdk)?;
    prefix::check()
}
