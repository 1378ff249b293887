//! The variables that make cargo, pkg-config and the loader find the SDK.

use crate::install::{self, Options};
use crate::{Result, clang, place, process, provision};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A prefix that is installed and up to date.
#[derive(Debug)]
pub(crate) struct Sdk {
    options: Options,
    /// Where programs record their calls.
    trace: Option<PathBuf>,
    /// Where cargo builds with it, if not where it usually does.
    target: Option<PathBuf>,
}

impl Sdk {
    /// Provides what is missing, and the SDK in its usual place.
    pub(crate) fn ready() -> Result<Sdk> {
        provision::crates()?;
        let options = Options::default();
        install::install(&options)?;
        Ok(Sdk::at(options))
    }

    /// A prefix that is known to be installed.
    pub(crate) fn at(options: Options) -> Sdk {
        Sdk { options, trace: None, target: None }
    }

    /// The same prefix, for which cargo builds in a directory of its own: builds for two releases in one place would undo
    /// each other.
    pub(crate) fn apart(self, target: PathBuf) -> Sdk {
        Sdk { target: Some(target), ..self }
    }

    /// The same prefix, with every program recording its calls in a new file.
    pub(crate) fn traced(self, file: &Path) -> Result<Sdk> {
        place::write(file, "")?;
        Ok(Sdk { trace: Some(file.to_owned()), ..self })
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// A command that sees the SDK.
    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.env("DOCA_DIR", &self.options.prefix);
        command.env("PKG_CONFIG_PATH", before("PKG_CONFIG_PATH", &self.options.modules()));
        command.env("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", &self.options.libdir()));
        command.envs(clang::variable());
        command.envs(self.trace.iter().map(|file| ("DOCA_SIM_TRACE", file)));
        command
    }

    /// A command that sees the SDK's librdmacm too.
    pub(crate) fn command_with_rdmacm(&self, program: impl Into<OsString>) -> Command {
        let mut command = self.command(program);
        let mut path = OsString::from(self.options.rdmacm());
        path.push(":");
        path.push(before("LD_LIBRARY_PATH", &self.options.libdir()));
        command.env("LD_LIBRARY_PATH", path);
        command
    }

    /// Cargo with the SDK.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = self.command(process::cargo());
        cargo.envs(self.target.iter().map(|dir| ("CARGO_TARGET_DIR", dir)));
        cargo
    }

    /// A program that [`Sdk::cargo`] builds for debugging.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        place::built(self.target.clone().unwrap_or_else(place::target), "debug").join(program)
    }
}

/// A search path with one more directory in front.
fn before(variable: &str, dir: &Path) -> OsString {
    let mut path = OsString::from(dir);
    if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

/// Passes a command on to cargo, and its exit code back.
pub(crate) fn cargo(args: &[String]) -> Result<ExitCode> {
    let status = Sdk::ready()?.cargo().args(args).status().map_err(|e| format!("cannot run cargo: {e}"))?;
    Ok(match status.code() {
        Some(0) => ExitCode::SUCCESS,
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    })
}

/// `cargo sim env`
pub(crate) fn print_exports(args: &[String]) -> Result {
    let rdmacm = match args {
        [] => false,
        [flag] if flag == "--rdmacm" => true,
        _ => return Err(format!("env takes --rdmacm or nothing, got {}", args.join(" "))),
    };
    let sdk = Sdk::ready()?;
    print!("{}", exports(sdk.options(), rdmacm, clang::variable()));
    Ok(())
}

fn exports(options: &Options, rdmacm: bool, clang: Option<(&str, PathBuf)>) -> String {
    let mut text = format!("export DOCA_DIR={}\n", quoted(&options.prefix));
    let mut paths = vec![("PKG_CONFIG_PATH", options.modules()), ("LD_LIBRARY_PATH", options.libdir())];
    if rdmacm {
        paths.push(("LD_LIBRARY_PATH", options.rdmacm()));
    }
    for (variable, dir) in paths {
        text += &format!("export {variable}={}\"${{{variable}:+:${variable}}}\"\n", quoted(&dir));
    }
    if let Some((variable, dir)) = clang {
        text += &format!("export {variable}={}\n", quoted(&dir));
    }
    text
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_exports() {
        let options = Options { prefix: "/a b/it's".into(), ..Options::default() };
        let script = exports(&options, false, Some(("LIBCLANG_PATH", "/c".into())));
        assert!(script.lines().all(|line| line.starts_with("export ")));
        let mut sh = Command::new("sh");
        sh.env("PKG_CONFIG_PATH", "/before").env_remove("LD_LIBRARY_PATH");
        sh.args([
            "-c",
            &format!("{script}echo $DOCA_DIR:$LIBCLANG_PATH; echo $PKG_CONFIG_PATH; echo $LD_LIBRARY_PATH"),
        ]);
        let lib = options.libdir().display().to_string();
        let said = process::output(&mut sh).unwrap();
        assert_eq!(said, format!("/a b/it's:/c\n{lib}/pkgconfig:/before\n{lib}\n"));
        // Before the libraries, so that it is found first.
        let last = exports(&options, true, None).lines().last().map(str::to_owned);
        let rdmacm = quoted(&options.rdmacm());
        assert_eq!(
            last,
            Some(format!("export LD_LIBRARY_PATH={rdmacm}\"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\""))
        );
    }
}
