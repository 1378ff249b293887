//! The bindings of this build against the ABI tables: functions both ways with their signatures, values of enums,
//! sizes of structs.
//!
//! A real DOCA may have more than the tables, since releases add functions and values; the simulator has not.

#[allow(dead_code, reason = "tests use a part of what the build script has")]
#[path = "../build/mod.rs"]
mod build;

use build::environment::Library;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::{Expr, ForeignItem, ImplItem, Item, ReturnType, Type};

const BINDINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/bindings.rs"));

/// A line of a table.
struct Row {
    kind: String,
    name: String,
    returns: String,
    value: String,
}

/// The rows of the headers that this build binds, as far as its release has them.
fn rows() -> Vec<Row> {
    let mut libraries = vec![Library::Common];
    if cfg!(feature = "comch") {
        libraries.push(Library::Comch);
    }
    if cfg!(feature = "rdma") {
        libraries.push(Library::Rdma);
    }
    if cfg!(feature = "sta") {
        libraries.push(Library::Sta);
    }
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../abi");
    let mut rows = Vec::new();
    for header in libraries.into_iter().flat_map(Library::headers) {
        let path = tables.join(header).with_extension("tsv");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [kind, name, returns, value, stability, _, since] = cells[..] else {
                panic!("{header}: not seven cells: {line}");
            };
            if exists(since) && !stability.starts_with("inline") {
                let [kind, name, returns, mut value] = [kind, name, returns, value].map(str::to_owned);
                if let Some(constant) = later_type(since) {
                    value = value.replacen(constant.trim_start_matches("const "), constant, 1);
                }
                rows.push(Row { kind, name, returns, value });
            }
        }
    }
    rows
}

/// A parameter that became a pointer to constant after 3.0, as in `3.0 (later: const struct x *)`.
fn later_type(since: &str) -> Option<&str> {
    let constant = since.split_once("(later: ")?.1.strip_suffix(')')?;
    (doca_sys::DOCA_VERSION_MINOR >= 1 && constant.starts_with("const ")).then_some(constant)
}

/// Whether the release that is bound has a row that is dated so.
fn exists(since: &str) -> bool {
    if doca_sys::DOCA_VERSION_MINOR >= 1 {
        !since.starts_with("3.0 only")
    } else {
        !since.starts_with("3.1+")
    }
}

fn items() -> Vec<Item> {
    syn::parse_file(BINDINGS).expect("bindings are Rust").items
}

/// Type of Rust for a type of C, in the bindings' spelling without paths.
fn rust_type(c: &str, arrays: &BTreeSet<String>, functions: &BTreeSet<String>) -> String {
    let stars = c.matches('*').count();
    let words: Vec<&str> =
        c.split(|x: char| x == '*' || x.is_whitespace()).filter(|word| !word.is_empty()).collect();
    let constant = words.first() == Some(&"const");
    let base = words.iter().find(|word| !["const", "struct", "enum", "union"].contains(word));
    let base = *base.unwrap_or_else(|| panic!("no type in {c:?}"));
    let name = match base {
        "void" if stars == 0 => return "()".to_owned(),
        "void" => "c_void",
        "char" => "c_char",
        "int" => "c_int",
        "uint8_t" => "u8",
        "uint16_t" => "u16",
        "uint32_t" => "u32",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "_Bool" => "bool",
        other => other,
    };
    // An array parameter is a pointer to its elements; a pointer to a function type is the function's own type.
    if arrays.contains(name) {
        return "*mut u8".to_owned();
    }
    let stars = stars - usize::from(functions.contains(name));
    let inner = if constant { "*const " } else { "*mut " };
    match stars {
        0 => name.to_owned(),
        _ => "*mut ".repeat(stars - 1) + inner + name,
    }
}

/// A type of the bindings without paths.
fn bound_type(ty: &Type) -> String {
    match ty {
        Type::Ptr(pointer) => {
            let kind = if pointer.const_token.is_some() { "*const " } else { "*mut " };
            kind.to_owned() + &bound_type(&pointer.elem)
        }
        Type::Path(path) => path.path.segments.last().expect("a name").ident.to_string(),
        Type::Tuple(unit) if unit.elems.is_empty() => "()".to_owned(),
        other => panic!("a type that no table has: {other:?}"),
    }
}

fn signature(parameters: &[String], returns: &str) -> String {
    format!("({}) -> {returns}", parameters.join(", "))
}

/// Parameter types out of a table's `type name, type name`.
fn parameters(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ").filter(|one| *one != "void").map(|one| {
        let end = one.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        if one == "..." { one } else { end.trim_end() }
    })
}

#[test]
fn functions_are_those_of_the_tables() {
    let rows = rows();
    let typedefs = |pick: fn(&str) -> bool| -> BTreeSet<String> {
        let chosen = rows.iter().filter(|row| row.kind == "typedef" && pick(&row.value));
        chosen.map(|row| row.name.clone()).collect()
    };
    let mut arrays = typedefs(|value| value.ends_with(']'));
    arrays.insert("doca_sta_nvmef_completion_t".to_owned());
    let functions = typedefs(|value| value.contains('(') && !value.contains("(*)"));
    assert!(functions.contains("doca_mmap_memrange_free_cb_t"), "{functions:?}");

    let expected: BTreeMap<String, String> = rows
        .iter()
        .filter(|row| row.kind == "fn")
        .map(|row| {
            let list: Vec<_> = parameters(&row.value)
                .map(|c| if c == "..." { c.to_owned() } else { rust_type(c, &arrays, &functions) })
                .collect();
            (row.name.clone(), signature(&list, &rust_type(&row.returns, &arrays, &functions)))
        })
        .collect();

    let mut bound = BTreeMap::new();
    for item in items() {
        let Item::ForeignMod(block) = item else { continue };
        for item in block.items {
            let ForeignItem::Fn(function) = item else { continue };
            let sig = function.sig;
            let mut list: Vec<_> = sig
                .inputs
                .iter()
                .map(|input| match input {
                    syn::FnArg::Typed(typed) => bound_type(&typed.ty),
                    syn::FnArg::Receiver(_) => panic!("a method in C"),
                })
                .collect();
            list.extend(sig.variadic.map(|_| "...".to_owned()));
            let returns = match &sig.output {
                ReturnType::Default => "()".to_owned(),
                ReturnType::Type(_, ty) => bound_type(ty),
            };
            bound.insert(sig.ident.to_string(), signature(&list, &returns));
        }
    }

    let mut faults = Vec::new();
    for (name, signature) in &expected {
        match bound.get(name) {
            None => faults.push(format!("{name} is not bound")),
            Some(other) if other != signature => {
                faults.push(format!("{name}\n    table {signature}\n    bound {other}"));
            }
            Some(_) => {}
        }
    }
    if doca_sys::built::SIMULATOR {
        let extra = bound.keys().filter(|name| !expected.contains_key(*name));
        faults.extend(extra.map(|name| format!("{name} is in no table")));
    }
    assert!(expected.len() > 200, "only {} functions in the tables", expected.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Associated constants of every newtype: enum, constant, value.
fn bound_constants() -> BTreeMap<String, BTreeMap<String, i64>> {
    let mut enums: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for item in items() {
        let Item::Impl(block) = item else { continue };
        let name = bound_type(&block.self_ty);
        for item in block.items {
            let ImplItem::Const(constant) = item else { continue };
            let Expr::Call(call) = constant.expr else { panic!("{} is no newtype", constant.ident) };
            enums.entry(name.clone()).or_default().insert(constant.ident.to_string(), integer(&call.args[0]));
        }
    }
    enums
}

fn integer(value: &Expr) -> i64 {
    match value {
        Expr::Unary(negative) => -integer(&negative.expr),
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => number.base10_parse().expect("an i64"),
        other => panic!("not a number: {other:?}"),
    }
}

#[test]
fn enums_are_newtypes_with_the_values_of_the_tables() {
    let bound = bound_constants();
    let mut checked = 0;
    for row in rows().iter().filter(|row| row.kind == "enum") {
        let values: BTreeMap<String, i64> = row
            .value
            .split(", ")
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or_else(|| panic!("{}: {pair}", row.name));
                (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{}: {pair}", row.name)))
            })
            .collect();
        let constants = bound.get(&row.name).unwrap_or_else(|| panic!("{} is not bound", row.name));
        if doca_sys::built::SIMULATOR {
            assert_eq!(constants, &values, "{}", row.name);
        }
        for (name, value) in values {
            assert_eq!(constants.get(&name), Some(&value), "{}: {name}", row.name);
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} values in the tables");
    assert!(!items().iter().any(|item| matches!(item, Item::Enum(_))), "an enum of Rust crosses the C ABI");
}

/// The numbers are clang's: bindgen writes them into assertions that hold when this compiles.
#[test]
fn structs_have_the_sizes_of_the_tables() {
    let mut checked = 0;
    for row in rows().iter().filter(|row| ["struct", "union"].contains(&row.kind.as_str())) {
        let name = &row.name;
        let assertion = BINDINGS.split(&format!("\"Size of {name}\"")).nth(1);
        let until = assertion.unwrap_or_else(|| panic!("no size of {name}")).split("usize").next().unwrap();
        let size = until.rsplit(' ').next().unwrap();
        assert_eq!(size, row.returns, "size of {name}");
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} structs in the tables");
}

/// A code that no header has yet is a value like any other.
#[test]
fn unknown_codes_survive() {
    let code = doca_sys::doca_error_t(4711);
    assert_ne!(code, doca_sys::doca_error_t::DOCA_SUCCESS);
    assert_eq!(code.0, 4711);
    assert!(doca_sys::DOCA_IS_ERROR(code));
}
