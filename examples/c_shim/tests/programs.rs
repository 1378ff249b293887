//! The program of this package, and one of the user's own.

use std::path::Path;
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(command: &mut Command) -> Output {
    command.env("DOCA_SIM_QUIET", "1").output().expect("it can be started")
}

#[test]
fn our_own_program_sees_the_devices() {
    let output = run(&mut Command::new(env!("CARGO_BIN_EXE_c_shim")));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.lines().count() >= 2 && said.contains("mlx5_0: messages of up to"), "{said}");
}

/// Several files, a header beside them, a library of its own, and an entry that is not called `main`.
#[test]
fn a_program_of_the_users_own_is_built_and_called() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, code) in [
        ("include/shared.h", "int twice(int number);\n"),
        ("twice.c", "#include <shared.h>\nint twice(int number) { return 2 * number; }\n"),
        (
            "program.c",
            "#include <doca_argp.h>\n#include <shared.h>\n#include <stdio.h>\n\
             int program(int argc, char **argv)\n{\n\
             \tif (doca_argp_init(\"program\", NULL) != DOCA_SUCCESS || doca_argp_destroy() != DOCA_SUCCESS)\n\t\treturn 1;\n\
             \tprintf(\"%d %s\\n\", twice(argc), argv[1]);\n\treturn argv[argc] == NULL ? 7 : 1;\n}\n",
        ),
    ] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has a directory")).expect("a directory");
        std::fs::write(path, code).expect("written");
    }
    let path = |name: &str| dir.path().join(name).display().to_string();
    let output = run(Command::new(env!("CARGO"))
        .args(["run", "--offline", "--quiet", "--", "a word"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_shim"))
        .env("C_SHIM_SOURCES", [path("program.c"), path("twice.c")].join(":"))
        .env("C_SHIM_INCLUDE", path("include"))
        .env("C_SHIM_LIBS", "doca_argp")
        .env("C_SHIM_ENTRY", "program"));
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(7), "4 a word\n"),
        "{}",
        text(&output.stderr)
    );
}
