//! The command-line parser, through the functions that `libdoca_argp` calls.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

// The functions under test are reached by their C names; this keeps the crate linked.
use doca_sim as _;

type Ptr = *mut c_void;
type ParamCallback = unsafe extern "C" fn(Ptr, Ptr) -> u32;
type ConfigCallback = unsafe extern "C" fn(Ptr) -> u32;

unsafe extern "C" {
    fn sim_doca_argp_usage();
    fn sim_doca_argp_init(name: *const c_char, config: Ptr) -> u32;
    fn sim_doca_argp_destroy() -> u32;
    fn sim_doca_argp_start(argc: c_int, argv: *const *const c_char) -> u32;
    fn sim_doca_argp_register_param(param: Ptr) -> u32;
    fn sim_doca_argp_register_cmd(cmd: Ptr) -> u32;
    fn sim_doca_argp_register_version_callback(callback: Option<ParamCallback>) -> u32;
    fn sim_doca_argp_register_validation_callback(callback: Option<ConfigCallback>) -> u32;
    fn sim_doca_argp_register_logger_callback(
        logger: Option<unsafe extern "C" fn()>,
        call: unsafe extern "C" fn(unsafe extern "C" fn(), u32, *const c_char),
    ) -> u32;
    fn sim_doca_argp_disable_logger_callback() -> u32;
    fn sim_doca_argp_set_dpdk_program(callback: Option<unsafe extern "C" fn(c_int, *mut *mut c_char) -> u32>);
    fn sim_doca_argp_param_create(param: *mut Ptr) -> u32;
    fn sim_doca_argp_param_destroy(param: Ptr) -> u32;
    fn sim_doca_argp_param_set_short_name(param: Ptr, name: *const c_char);
    fn sim_doca_argp_param_set_long_name(param: Ptr, name: *const c_char);
    fn sim_doca_argp_param_set_arguments(param: Ptr, arguments: *const c_char);
    fn sim_doca_argp_param_set_description(param: Ptr, text: *const c_char);
    fn sim_doca_argp_param_set_callback(param: Ptr, callback: Option<ParamCallback>);
    fn sim_doca_argp_param_set_type(param: Ptr, kind: u32);
    fn sim_doca_argp_param_set_mandatory(param: Ptr);
    fn sim_doca_argp_param_set_cli_only(param: Ptr);
    fn sim_doca_argp_param_set_multiplicity(param: Ptr);
    fn sim_doca_argp_param_set_singular(param: Ptr);
    fn sim_doca_argp_param_set_inherited(param: Ptr);
    fn sim_doca_argp_param_set_hidden(param: Ptr);
    fn sim_doca_argp_cmd_create(cmd: *mut Ptr) -> u32;
    fn sim_doca_argp_cmd_destroy(cmd: Ptr) -> u32;
    fn sim_doca_argp_cmd_set_name(cmd: Ptr, name: *const c_char);
    fn sim_doca_argp_cmd_set_description(cmd: Ptr, text: *const c_char);
    fn sim_doca_argp_cmd_set_callback(cmd: Ptr, callback: Option<ConfigCallback>);
    fn sim_doca_argp_cmd_set_hidden(cmd: Ptr);
    fn sim_doca_argp_cmd_register_param(cmd: Ptr, param: Ptr) -> u32;
    fn sim_doca_argp_cmd_register_cmd(cmd: Ptr, inner: Ptr) -> u32;
    fn sim_doca_argp_get_log_level(level: *mut c_int) -> u32;
    fn sim_doca_argp_get_sdk_log_level(level: *mut c_int) -> u32;
    fn sim_doca_log_level_get_global_lower_limit() -> u32;
    fn sim_doca_log_level_get_global_sdk_limit() -> u32;
    fn sim_doca_log_level_set_global_lower_limit(level: u32) -> u32;
}

const SUCCESS: u32 = 0;
const NOT_PERMITTED: u32 = 2;
const NOT_SUPPORTED: u32 = 4;
const INVALID_VALUE: u32 = 6;
const INITIALIZATION: u32 = 8;
const IO_FAILED: u32 = 17;
const BAD_STATE: u32 = 18;
const ALREADY_EXIST: u32 = 23;

const STRING: u32 = 1;
const INT: u32 = 2;
const BOOLEAN: u32 = 3;
const OBJECT: u32 = 4;

/// The parser exists once per process, so one test at a time uses it.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// What the callbacks of this thread's program were called with.
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(what: impl Into<String>) {
    CALLS.with_borrow_mut(|calls| calls.push(what.into()));
}

fn calls() -> Vec<String> {
    CALLS.take()
}

/// Fails the call whose value is "bad", with a code that the parser itself never gives.
unsafe extern "C" fn on_string(value: Ptr, config: Ptr) -> u32 {
    // SAFETY: the parser hands a string parameter's value over as a C string, which lives during the call.
    let text = unsafe { CStr::from_ptr(value.cast()) }.to_string_lossy();
    // SAFETY: the config is what `Program::new` gave to init: a byte that lives as long as the parser.
    note(format!("{}={text}", unsafe { *config.cast::<u8>() } as char));
    if text == "bad" { NOT_PERMITTED } else { SUCCESS }
}

unsafe extern "C" fn on_int(value: Ptr, _: Ptr) -> u32 {
    // SAFETY: an int parameter's value is an int.
    note(format!("int {}", unsafe { *value.cast::<c_int>() }));
    SUCCESS
}

unsafe extern "C" fn on_bool(value: Ptr, _: Ptr) -> u32 {
    // SAFETY: a boolean parameter's value is a bool.
    note(format!("bool {}", unsafe { *value.cast::<bool>() }));
    SUCCESS
}

unsafe extern "C" fn on_object(_: Ptr, _: Ptr) -> u32 {
    note("object");
    SUCCESS
}

unsafe extern "C" fn on_command(_: Ptr) -> u32 {
    note("command");
    SUCCESS
}

/// A program whose parser is initialized, and destroyed at the end.
struct Program {
    config: Box<u8>,
    _turn: MutexGuard<'static, ()>,
}

impl Program {
    fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = Box::new(b'c');
        // SAFETY: the name is a C string, and the box, to which callbacks are given this pointer, lives as long as the parser.
        assert_eq!(unsafe { sim_doca_argp_init(c"program".as_ptr(), (&raw mut *config).cast()) }, SUCCESS);
        calls();
        Program { config, _turn: turn }
    }

    /// With one flag of each type, the names of which are those of the RDMA samples.
    fn ordinary() -> Self {
        let program = Self::new();
        for (short, long, kind) in [
            (c"d", c"device", STRING),
            (c"ld", c"local-path", STRING),
            (c"g", c"gid-index", INT),
            (c"cm", c"use-cm", BOOLEAN),
        ] {
            assert_eq!(
                // SAFETY: made by this library just now, and registered once.
                unsafe { sim_doca_argp_register_param(param(Some(short), Some(long), kind)) },
                SUCCESS
            );
        }
        program
    }

    fn add(&self, params: &[Ptr]) {
        for param in params {
            // SAFETY: tests give what `param` made, each once.
            assert_eq!(unsafe { sim_doca_argp_register_param(*param) }, SUCCESS);
        }
    }

    fn start(&self, words: &[&str]) -> u32 {
        assert_eq!(*self.config, b'c');
        start(words)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: initialized by `new`, and not used after this.
        unsafe { sim_doca_argp_destroy() };
    }
}

fn start(words: &[&str]) -> u32 {
    let words: Vec<_> =
        std::iter::once(&"/usr/bin/program").chain(words).map(|word| CString::new(*word).unwrap()).collect();
    let words: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    // SAFETY: as many C strings as are named, which outlive the call.
    unsafe { sim_doca_argp_start(words.len() as c_int, words.as_ptr()) }
}

fn param(short: Option<&CStr>, long: Option<&CStr>, kind: u32) -> Ptr {
    let mut param = null_mut();
    let callback: ParamCallback = match kind {
        INT => on_int,
        BOOLEAN => on_bool,
        OBJECT => on_object,
        _ => on_string,
    };
    // SAFETY: the parameter is made here and not registered yet; the names are C strings, which are copied.
    unsafe {
        assert_eq!(sim_doca_argp_param_create(&mut param), SUCCESS);
        sim_doca_argp_param_set_short_name(param, short.map_or(null(), CStr::as_ptr));
        sim_doca_argp_param_set_long_name(param, long.map_or(null(), CStr::as_ptr));
        sim_doca_argp_param_set_description(param, c"what it is for".as_ptr());
        sim_doca_argp_param_set_arguments(param, c"<value>".as_ptr());
        sim_doca_argp_param_set_callback(param, Some(callback));
        sim_doca_argp_param_set_type(param, kind);
    }
    param
}

fn command(name: &CStr) -> Ptr {
    let mut cmd = null_mut();
    // SAFETY: the command is made here and not registered yet; the names are C strings, which are copied.
    unsafe {
        assert_eq!(sim_doca_argp_cmd_create(&mut cmd), SUCCESS);
        sim_doca_argp_cmd_set_name(cmd, name.as_ptr());
        sim_doca_argp_cmd_set_description(cmd, c"what it does".as_ptr());
        sim_doca_argp_cmd_set_callback(cmd, Some(on_command));
    }
    cmd
}

#[test]
fn words_become_typed_values_in_their_order() {
    for (words, code, expected) in [
        (&[][..], SUCCESS, &[][..]),
        (&["-d", "mlx5_0"], SUCCESS, &["c=mlx5_0"]),
        (&["--device", "mlx5_0"], SUCCESS, &["c=mlx5_0"]),
        (&["--device=mlx5_0"], SUCCESS, &["c=mlx5_0"]),
        (&["--device=a=b"], SUCCESS, &["c=a=b"]),
        (&["--device="], SUCCESS, &["c="]),
        (&["-ld", "/tmp/x", "-d", "y"], SUCCESS, &["c=/tmp/x", "c=y"]),
        (&["-cm", "-g", "3"], SUCCESS, &["bool true", "int 3"]),
        (&["--use-cm=false"], SUCCESS, &["bool false"]),
        (&["-g", "-1"], SUCCESS, &["int -1"]),
        (&["-g", "0x1f"], SUCCESS, &["int 31"]),
        (&["-g", "-2147483648"], SUCCESS, &["int -2147483648"]),
        (&["-d", "-"], SUCCESS, &["c=-"]),
        // Bad input.
        (&["-g", "2147483648"], INVALID_VALUE, &[]),
        (&["-g", "3x"], INVALID_VALUE, &[]),
        (&["-g", "+-3"], INVALID_VALUE, &[]),
        (&["-g", ""], INVALID_VALUE, &[]),
        (&["-d"], INVALID_VALUE, &[]),
        (&["-d", "-cm"], INVALID_VALUE, &[]),
        (&["-d", "--gid-index=1"], INVALID_VALUE, &[]),
        (&["--use-cm=maybe"], INVALID_VALUE, &[]),
        (&["-d", "x", "-d", "y"], INVALID_VALUE, &[]),
        (&["-d", "x", "--device", "y"], INVALID_VALUE, &[]),
        (&["stray"], INVALID_VALUE, &[]),
        (&["-"], INVALID_VALUE, &[]),
        (&["-x"], NOT_SUPPORTED, &[]),
        (&["--"], NOT_SUPPORTED, &[]),
        (&["-device", "x"], NOT_SUPPORTED, &[]),
        (&["--d", "x"], NOT_SUPPORTED, &[]),
        (&["-l", "loud"], INVALID_VALUE, &[]),
        // A callback's refusal ends the parsing with its code.
        (&["-d", "bad", "-g", "1"], NOT_PERMITTED, &["c=bad"]),
    ] {
        let program = Program::ordinary();
        assert_eq!(program.start(words), code, "{words:?}");
        assert_eq!(calls(), expected, "{words:?}");
    }
}

#[test]
fn bytes_that_are_no_text_reach_a_string_flag_unchanged() {
    let _program = Program::ordinary();
    let words = [c"program".as_ptr(), c"-ld".as_ptr(), c"/\xff".as_ptr()];
    // SAFETY: three C strings, which outlive the call.
    assert_eq!(unsafe { sim_doca_argp_start(3, words.as_ptr()) }, SUCCESS);
    assert_eq!(calls(), ["c=/\u{fffd}"]);
}

#[test]
fn mandatory_repeated_and_singular_flags() {
    for (words, code) in [
        (&[][..], INVALID_VALUE),
        (&["-m", "x"], SUCCESS),
        (&["-m", "x", "-r", "1", "-r", "2"], SUCCESS),
        (&["-m", "x", "--list"], INVALID_VALUE),
        (&["--list"], SUCCESS),
        (&["--list", "-l", "30"], SUCCESS),
    ] {
        let program = Program::new();
        let (mandatory, repeated, singular) = (
            param(Some(c"m"), None, STRING),
            param(Some(c"r"), None, INT),
            param(None, Some(c"list"), BOOLEAN),
        );
        // SAFETY: all of them were made just now; each is registered once, after it is set up.
        unsafe {
            sim_doca_argp_param_set_mandatory(mandatory);
            sim_doca_argp_param_set_multiplicity(repeated);
            sim_doca_argp_param_set_singular(singular);
        }
        program.add(&[mandatory, repeated, singular]);
        assert_eq!(program.start(words), code, "{words:?}");
    }
}

#[test]
fn commands_have_flags_of_their_own_and_inherit_some() {
    for (words, code, expected) in [
        (&["set", "-e", "on"][..], SUCCESS, &["command", "c=on"][..]),
        (&["-o", "1", "set", "-e", "on"], SUCCESS, &["int 1", "command", "c=on"]),
        (&["set", "-i", "x", "-e", "on"], SUCCESS, &["command", "c=x", "c=on"]),
        (&["set", "-e", "on", "deep"], SUCCESS, &["command", "c=on", "command"]),
        (&["get"], SUCCESS, &["command"]),
        (&["get", "-v", "vf"], SUCCESS, &["command", "c=vf"]),
        (&[], SUCCESS, &[]),
        (&["set"], INVALID_VALUE, &[]),
        (&["set", "-o", "1", "-e", "on"], NOT_SUPPORTED, &[]),
        (&["get", "-e", "on"], NOT_SUPPORTED, &[]),
        (&["nothing"], INVALID_VALUE, &[]),
        (&["get", "set"], INVALID_VALUE, &[]),
    ] {
        let program = Program::new();
        let (outer, inherited, enabled) =
            (param(Some(c"o"), None, INT), param(Some(c"i"), None, STRING), param(Some(c"e"), None, STRING));
        let (set, get, deep) = (command(c"set"), command(c"get"), command(c"deep"));
        // SAFETY: all of them were made just now; each is registered once, after it is set up.
        unsafe {
            sim_doca_argp_param_set_inherited(inherited);
            sim_doca_argp_param_set_mandatory(enabled);
            assert_eq!(sim_doca_argp_cmd_register_param(set, enabled), SUCCESS);
            assert_eq!(sim_doca_argp_cmd_register_cmd(set, deep), SUCCESS);
            // The program's own -v hides the built-in one.
            assert_eq!(sim_doca_argp_cmd_register_param(get, param(Some(c"v"), None, STRING)), SUCCESS);
            sim_doca_argp_cmd_set_hidden(get);
            assert_eq!(sim_doca_argp_register_cmd(set), SUCCESS);
            assert_eq!(sim_doca_argp_register_cmd(get), SUCCESS);
        }
        program.add(&[outer, inherited]);
        assert_eq!(program.start(words), code, "{words:?}");
        assert_eq!(calls(), expected, "{words:?}");
    }
}

#[test]
fn a_file_holds_the_same_flags() {
    let dir = scratch("flags");
    let file = dir.join("flags.json");
    for (text, more, code, expected) in [
        (
            r#"{"device": "a", "gid-index": 2, "use-cm": false}"#,
            &[][..],
            SUCCESS,
            &["c=a", "int 2", "bool false"][..],
        ),
        (r#"{"doca_program_flags": {"gid-index": 0xF, "device": "a",},}"#, &[], SUCCESS, &["int 15", "c=a"]),
        (
            "// comment\n{\"doca_general_flags\": {\"log-level\": 60}, /* x */ \"device\": \"a\"}",
            &[],
            SUCCESS,
            &["c=a"],
        ),
        (r#"{"log-level": "info", "sdk-log-level": 30}"#, &[], SUCCESS, &[]),
        (r#"{"many": [1, 2]}"#, &[], SUCCESS, &["int 1", "int 2"]),
        (r#"{"device": "file"}"#, &["-d", "line"], SUCCESS, &["c=line"]),
        // Bad input.
        (r#"{"unknown": 1}"#, &[], NOT_SUPPORTED, &[]),
        (r#"{"d": "short"}"#, &[], NOT_SUPPORTED, &[]),
        (r#"{"only-line": "x"}"#, &[], NOT_SUPPORTED, &[]),
        (r#"{"json": "again"}"#, &[], NOT_SUPPORTED, &[]),
        (r#"{"doca_program_flags": 1}"#, &[], IO_FAILED, &[]),
        (r#"{"device": 1}"#, &[], INVALID_VALUE, &[]),
        (r#"{"gid-index": "1"}"#, &[], INVALID_VALUE, &[]),
        (r#"{"gid-index": 1.5}"#, &[], INVALID_VALUE, &[]),
        (r#"{"gid-index": 99999999999}"#, &[], INVALID_VALUE, &[]),
        (r#"{"use-cm": 1}"#, &[], INVALID_VALUE, &[]),
        (r#"{"device": ["a"]}"#, &[], INVALID_VALUE, &[]),
        (r#"{"log-level": 31}"#, &[], INVALID_VALUE, &[]),
        (r#"{"device": "a", "device": "b"}"#, &[], INVALID_VALUE, &[]),
        (r#"{"object": {"a": 1}}"#, &[], NOT_SUPPORTED, &[]),
        (r#"{"object": 1}"#, &[], INVALID_VALUE, &[]),
        (r#"["device"]"#, &[], IO_FAILED, &[]),
        (r#"{"device": "#, &[], IO_FAILED, &[]),
        ("", &[], IO_FAILED, &[]),
    ] {
        std::fs::write(&file, text).unwrap();
        let program = Program::ordinary();
        let (many, only_line) = (param(None, Some(c"many"), INT), param(None, Some(c"only-line"), STRING));
        // SAFETY: all of them were made just now; each is registered once, after it is set up.
        unsafe {
            sim_doca_argp_param_set_multiplicity(many);
            sim_doca_argp_param_set_cli_only(only_line);
        }
        program.add(&[many, only_line, param(None, Some(c"object"), OBJECT)]);
        let words = [&["--json", file.to_str().unwrap()], more].concat();
        assert_eq!(program.start(&words), code, "{text}");
        assert_eq!(calls(), expected, "{text}");
    }
    let program = Program::ordinary();
    assert_eq!(program.start(&["-j", dir.join("none.json").to_str().unwrap()]), IO_FAILED);
    std::fs::remove_dir_all(dir).unwrap();
}

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("doca-sim-argp-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn each_call_has_its_state() {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut handle = null_mut();
    // SAFETY: handles are what this library made, live as long as its rules say, or refused before they are followed; names
    // are C strings.
    unsafe {
        assert_eq!(sim_doca_argp_destroy(), BAD_STATE);
        assert_eq!(start(&[]), BAD_STATE);
        assert_eq!(sim_doca_argp_param_create(&mut handle), BAD_STATE);
        assert_eq!(sim_doca_argp_cmd_create(&mut handle), BAD_STATE);
        assert_eq!(sim_doca_argp_register_version_callback(Some(on_string)), BAD_STATE);
        assert_eq!(sim_doca_argp_register_validation_callback(Some(on_command)), BAD_STATE);
        assert_eq!(sim_doca_argp_disable_logger_callback(), BAD_STATE);
        sim_doca_argp_set_dpdk_program(Some(on_dpdk));
        sim_doca_argp_usage();
        assert_eq!(sim_doca_argp_init(null(), null_mut()), SUCCESS);
        assert_eq!(sim_doca_argp_init(null(), null_mut()), BAD_STATE);

        // What is registered belongs to the parser, and does not change any more.
        let known = param(Some(c"k"), Some(c"known"), INT);
        assert_eq!(sim_doca_argp_register_param(known), SUCCESS);
        assert_eq!(sim_doca_argp_register_param(known), BAD_STATE);
        assert_eq!(sim_doca_argp_param_destroy(known), BAD_STATE);
        sim_doca_argp_param_set_mandatory(known);
        let done = command(c"done");
        assert_eq!(sim_doca_argp_cmd_register_cmd(done, done), INVALID_VALUE);
        assert_eq!(sim_doca_argp_register_cmd(done), SUCCESS);
        assert_eq!(sim_doca_argp_register_cmd(done), BAD_STATE);
        assert_eq!(sim_doca_argp_cmd_destroy(done), BAD_STATE);
        assert_eq!(sim_doca_argp_cmd_register_param(done, param(Some(c"x"), None, INT)), BAD_STATE);
        assert_eq!(sim_doca_argp_cmd_register_cmd(done, command(c"x")), BAD_STATE);
        assert_eq!(sim_doca_argp_param_destroy(param(None, None, INT)), SUCCESS);
        assert_eq!(sim_doca_argp_cmd_destroy(command(c"x")), SUCCESS);

        let unregistered = param(Some(c"u"), None, INT);
        assert_eq!(start(&[]), SUCCESS);
        assert_eq!(start(&[]), BAD_STATE);
        assert_eq!(sim_doca_argp_register_param(unregistered), BAD_STATE);
        assert_eq!(sim_doca_argp_destroy(), SUCCESS);
        assert_eq!(sim_doca_argp_destroy(), BAD_STATE);
        // A second life.
        assert_eq!(sim_doca_argp_init(null(), null_mut()), SUCCESS);
        assert_eq!(start(&["--known", "1"]), NOT_SUPPORTED);
        assert_eq!(sim_doca_argp_destroy(), SUCCESS);
    }
    drop(turn);
}

#[test]
fn a_declaration_must_be_whole_and_its_names_free() {
    let program = Program::ordinary();
    // SAFETY: each was made just now and is registered at most once; NULL is refused before it is followed; names are C
    // strings.
    unsafe {
        let register = |param| sim_doca_argp_register_param(param);
        assert_eq!(register(param(None, None, INT)), INITIALIZATION);
        assert_eq!(register(param(Some(c"x"), None, 0)), INITIALIZATION);
        assert_eq!(register(param(Some(c"x"), None, 99)), INITIALIZATION);
        for clear in [
            |param| sim_doca_argp_param_set_description(param, null()),
            |param| sim_doca_argp_param_set_callback(param, None),
        ] {
            let unfinished = param(Some(c"x"), None, INT);
            clear(unfinished);
            assert_eq!(register(unfinished), INITIALIZATION);
        }
        for name in [c"", c"-x", c"a=b", c"a b", c"a\n"] {
            assert_eq!(register(param(Some(name), None, INT)), INVALID_VALUE, "{name:?}");
        }
        assert_eq!(register(param(Some(c"d"), Some(c"other"), INT)), INVALID_VALUE);
        assert_eq!(register(param(Some(c"other"), Some(c"device"), INT)), INVALID_VALUE);
        assert_eq!(register(param(Some(c"o"), None, OBJECT)), INVALID_VALUE);
        assert_eq!(register(null_mut()), INVALID_VALUE);

        let nameless = command(c"x");
        sim_doca_argp_cmd_set_name(nameless, null());
        assert_eq!(sim_doca_argp_register_cmd(nameless), INITIALIZATION);
        let silent = command(c"x");
        sim_doca_argp_cmd_set_description(silent, null());
        assert_eq!(sim_doca_argp_register_cmd(silent), INITIALIZATION);
        assert_eq!(sim_doca_argp_register_cmd(command(c"twice")), SUCCESS);
        assert_eq!(sim_doca_argp_register_cmd(command(c"twice")), INVALID_VALUE);
        assert_eq!(sim_doca_argp_register_cmd(null_mut()), INVALID_VALUE);
    }
    drop(program);
}

#[test]
fn null_pointers_are_refused() {
    let _program = Program::new();
    // SAFETY: NULL is refused before it is followed; the vectors of words have as many entries as are named.
    unsafe {
        assert_eq!(sim_doca_argp_param_create(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_cmd_create(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_param_destroy(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_cmd_destroy(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_get_log_level(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_get_sdk_log_level(null_mut()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_register_version_callback(None), INVALID_VALUE);
        assert_eq!(sim_doca_argp_register_validation_callback(None), INVALID_VALUE);
        assert_eq!(sim_doca_argp_register_logger_callback(None, call_logger), INVALID_VALUE);
        sim_doca_argp_param_set_hidden(null_mut());
        assert_eq!(sim_doca_argp_start(1, null()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_start(0, [null()].as_ptr()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_start(-1, [null()].as_ptr()), INVALID_VALUE);
        assert_eq!(sim_doca_argp_start(2, [c"program".as_ptr(), null()].as_ptr()), INVALID_VALUE);
        assert_eq!(start(&[]), SUCCESS);
    }
}

#[test]
fn log_levels_reach_the_log() {
    let program = Program::new();
    let mut level = 0;
    // SAFETY: the level is a local integer, which the calls write.
    unsafe {
        sim_doca_log_level_set_global_lower_limit(40);
        assert_eq!(sim_doca_argp_get_log_level(&mut level), SUCCESS);
        assert_eq!(level, 40);
        assert_eq!(program.start(&["-l", "70", "--sdk-log-level", "error"]), SUCCESS);
        assert_eq!(sim_doca_log_level_get_global_lower_limit(), 70);
        assert_eq!(sim_doca_log_level_get_global_sdk_limit(), 30);
        sim_doca_log_level_set_global_lower_limit(50);
        assert_eq!(sim_doca_argp_get_log_level(&mut level), SUCCESS);
        assert_eq!(level, 70, "what the user asked for");
        assert_eq!(sim_doca_argp_get_sdk_log_level(&mut level), SUCCESS);
        assert_eq!(level, 30);
    }
}

#[test]
fn the_validation_callback_comes_last_and_decides() {
    unsafe extern "C" fn refuse(_: Ptr) -> u32 {
        note("validation");
        NOT_PERMITTED
    }
    let program = Program::ordinary();
    // SAFETY: a function of the type that is asked for, which follows no pointer.
    assert_eq!(unsafe { sim_doca_argp_register_validation_callback(Some(refuse)) }, SUCCESS);
    assert_eq!(program.start(&["-g", "1"]), NOT_PERMITTED);
    assert_eq!(calls(), ["int 1", "validation"]);
}

unsafe extern "C" fn on_dpdk(argc: c_int, argv: *mut *mut c_char) -> u32 {
    for at in 0..argc as usize {
        // SAFETY: there are `argc` C strings, which live during the call.
        note(unsafe { CStr::from_ptr(*argv.add(at)) }.to_string_lossy());
    }
    // SAFETY: the array has one entry more, as `argv` of `main` has.
    assert!(unsafe { *argv.add(argc as usize) }.is_null());
    // DPDK's parser reorders the array; nothing may be freed twice for it.
    // SAFETY: the array is this callback's to change, and has at least the program's name.
    unsafe { argv.write(*argv.add(argc as usize - 1)) };
    SUCCESS
}

#[test]
fn what_precedes_two_dashes_is_for_dpdk() {
    let dir = scratch("dpdk");
    let file = dir.join("dpdk.json");
    let devices = r#"[{"device": "pf", "id": "03:00.0", "hws": true}, {"device": "sf", "id": 4}]"#;
    let text =
        format!(r#"{{"doca_dpdk_flags": {{"devices": {devices}, "core-list": "0-1", "flags": "-n 4"}}}}"#);
    std::fs::write(&file, text).unwrap();
    let json = file.to_str().unwrap();
    for (words, expected) in [
        (&["-g", "1"][..], "int 1,/usr/bin/program"),
        (&["-a", "03:00.0", "--", "-g", "1"], "int 1,/usr/bin/program,-a,03:00.0"),
        (&["-j", json], "/usr/bin/program,-l,0-1,-a,03:00.0,dv_flow_en=2,-a,auxiliary:mlx5_core.sf.4,-n,4"),
    ] {
        let program = Program::ordinary();
        // SAFETY: the callback follows what `on_dpdk` says it is given.
        unsafe { sim_doca_argp_set_dpdk_program(Some(on_dpdk)) };
        assert_eq!(program.start(words), SUCCESS, "{words:?}");
        assert_eq!(calls().join(","), expected, "{words:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

unsafe extern "C" fn call_logger(logger: unsafe extern "C" fn(), level: u32, text: *const c_char) {
    // SAFETY: the function that was registered, which does nothing.
    unsafe { logger() };
    // SAFETY: the message is a C string, which lives during the call.
    note(format!("{level} {}", unsafe { CStr::from_ptr(text) }.to_string_lossy()));
}

#[test]
fn messages_to_the_user_reach_the_programs_logger() {
    unsafe extern "C" fn logger() {}
    let program = Program::ordinary();
    // SAFETY: functions of the types that are asked for.
    unsafe {
        assert_eq!(sim_doca_argp_disable_logger_callback(), BAD_STATE);
        assert_eq!(sim_doca_argp_register_logger_callback(Some(logger), call_logger), SUCCESS);
        assert_eq!(sim_doca_argp_register_logger_callback(Some(logger), call_logger), ALREADY_EXIST);
    }
    assert_eq!(program.start(&["-x"]), NOT_SUPPORTED);
    assert_eq!(calls(), ["30 unknown flag -x"]);
    // SAFETY: it takes no argument.
    assert_eq!(unsafe { sim_doca_argp_disable_logger_callback() }, SUCCESS);
}

#[test]
fn a_version_callback_may_return_or_destroy_the_parser() {
    unsafe extern "C" fn version(value: Ptr, _: Ptr) -> u32 {
        assert!(value.is_null());
        note("version");
        SUCCESS
    }
    unsafe extern "C" fn end(_: Ptr, _: Ptr) -> u32 {
        // SAFETY: it takes no argument, and the parser is there while it calls back.
        unsafe { sim_doca_argp_destroy() }
    }
    let program = Program::ordinary();
    // SAFETY: a function of the type that is asked for, which follows no pointer.
    assert_eq!(unsafe { sim_doca_argp_register_version_callback(Some(version)) }, SUCCESS);
    assert_eq!(program.start(&["-v", "-g", "1"]), SUCCESS);
    assert_eq!(calls(), ["version", "int 1"]);
    drop(program);
    let program = Program::ordinary();
    // SAFETY: a function of the type that is asked for, which follows no pointer.
    assert_eq!(unsafe { sim_doca_argp_register_version_callback(Some(end)) }, SUCCESS);
    assert_eq!(program.start(&["-v", "-g", "1"]), BAD_STATE);
    assert_eq!(calls(), [""; 0]);
}

/// Runs in a process of its own, because it ends the process.
#[test]
#[ignore = "ends its process: in every run, help_and_version_print_and_end_the_process_well starts it as a child"]
fn child() {
    let program = Program::ordinary();
    let (mandatory, hidden, plain, many) = (
        param(Some(c"m"), Some(c"must"), STRING),
        param(None, Some(c"secret"), STRING),
        param(Some(c"p"), Some(c"plain"), INT),
        param(None, Some(c"a-flag-with-a-name-that-is-too-long-for-its-column"), STRING),
    );
    // SAFETY: all of them were made just now and are not registered yet; texts are C strings or NULL.
    unsafe {
        sim_doca_argp_param_set_mandatory(mandatory);
        sim_doca_argp_param_set_hidden(hidden);
        sim_doca_argp_param_set_arguments(plain, null());
        sim_doca_argp_param_set_description(many, c"First line\nsecond line, which is so long that it has to be broken somewhere, best of all between two words".as_ptr());
        assert_eq!(sim_doca_argp_register_cmd(command(c"set")), SUCCESS);
    }
    program.add(&[mandatory, hidden, many, plain]);
    let words = std::env::var("WORDS").unwrap();
    program.start(&words.split(' ').collect::<Vec<_>>());
    unreachable!("the process goes on");
}

#[test]
fn help_and_version_print_and_end_the_process_well() {
    let run = |words: &str| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("WORDS", words)
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(0), "{words}: {}", String::from_utf8_lossy(&child.stderr));
        assert_eq!(String::from_utf8_lossy(&child.stderr), "", "{words}");
        String::from_utf8(child.stdout).unwrap()
    };
    let help = run("--help");
    for line in [
        "Usage: program [flags] <command> [command's flags]",
        "  -p, --plain <number>       what it is for",
        "Program flags:",
        "  -d, --device <value>       what it is for",
        "  -m, --must <value>         what it is for (mandatory)",
        "      --a-flag-with-a-name-that-is-too-long-for-its-column <value>",
        "                             First line",
        "                             second line, which is so long that it has to be broken somewhere, best",
        "                             of all between two words",
        "Commands:",
        "  set  what it does",
        "  -h, --help                   Show this text and end",
        "      --sdk-log-level <level>  Log level of the SDK",
    ] {
        assert!(help.lines().any(|found| found == line), "{line:?} in\n{help}");
    }
    assert!(!help.contains("secret"), "{help}");
    assert!(run("set -h").contains("Usage: program set [flags]\n\nwhat it does\n"));
    assert!(run("-v").contains("DOCA unknown (doca-sim, software)\n"));
}
