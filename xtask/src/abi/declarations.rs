//! The public headers against the tables: signatures, values, sizes and offsets by the C compiler, and
//! nothing declared that the tables do not have.

use crate::declaration::{self, enumerators, fields, pointer_type};
use crate::install::Options;
use crate::library;
use crate::table::{Kind, Row, Stability, Table};
use crate::{Result, place, process};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

pub(super) fn check(options: &Options) -> Result {
    let mut tables = Vec::new();
    for header in headers() {
        tables.push(Table::load(header, options.release)?);
    }
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a directory: {e}"))?;
    let code = scratch.path().join("declarations.c");
    let declared = scratch.path().join("declared");
    place::write(&code, program(&tables))?;
    let mut cc = compiler(&options.include());
    cc.args(["-fsyntax-only", "-aux-info"]).arg(&declared).arg(&code);
    process::run(&mut cc).map_err(|e| format!("the headers differ from the tables: {e}"))?;

    let mut extra = unknown_functions(&place::read(&declared)?, &options.include(), &tables);
    let preprocessed = process::output(compiler(&options.include()).args(["-E", "-P"]).arg(&code))?;
    extra.extend(unknown_enumerators(&preprocessed, &tables));
    extra.extend(unknown_headers(&options.include())?);
    if !extra.is_empty() {
        return Err(format!("the headers declare what the tables do not have: {}", extra.join(", ")));
    }
    let rows = |kind| tables.iter().map(|t| t.of(kind).count()).sum::<usize>();
    println!(
        "headers: {} functions, {} enums, {} structs and unions, {} typedefs, {} macros as in the tables",
        rows(Kind::Function),
        rows(Kind::Enum),
        rows(Kind::Struct) + rows(Kind::Union),
        rows(Kind::Typedef),
        rows(Kind::Macro)
    );
    Ok(())
}

fn headers() -> impl Iterator<Item = &'static str> {
    library::MACRO_HEADERS.iter().chain(library::ALL.iter().flat_map(|library| library.headers)).copied()
}

fn compiler(include: &Path) -> std::process::Command {
    let mut cc = process::cc();
    cc.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wstrict-prototypes",
        "-DDOCA_ALLOW_EXPERIMENTAL_API",
    ]);
    cc.arg("-I").arg(include);
    cc
}

/// A C file of assertions, one or more for each row.
fn program(tables: &[Table]) -> String {
    let mut c = String::from(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdarg.h>\n#include <linux/types.h>\n",
    );
    for table in tables {
        _ = writeln!(c, "#include <{}.h>", table.header);
    }
    c += "#define SAME(a, b) __builtin_types_compatible_p(a, b)\n";
    for table in tables {
        for row in &table.rows {
            match row.kind {
                Kind::Function => function(&mut c, row),
                Kind::Enum => {
                    for (name, value) in enumerators(row) {
                        assert(&mut c, &format!("{name} == {value}"), &format!("enum {}: {name}", row.name));
                    }
                    assert(&mut c, &format!("sizeof(enum {}) == 4", row.name), &format!("enum {}", row.name));
                }
                Kind::Struct => aggregate(&mut c, "struct", row),
                Kind::Union => aggregate(&mut c, "union", row),
                Kind::Opaque => _ = writeln!(c, "extern struct {0} *any_{0};", row.name),
                Kind::Typedef => {
                    assert(
                        &mut c,
                        &format!("SAME({}, {})", row.name, row.detail),
                        &format!("typedef {}", row.name),
                    );
                }
                Kind::Macro => value(&mut c, &table.header, row),
            }
        }
    }
    c
}

fn assert(c: &mut String, condition: &str, what: &str) {
    _ = writeln!(c, "_Static_assert({condition}, \"{what}\");");
}

fn function(c: &mut String, row: &Row) {
    if row.stability == Stability::Inline {
        // Its address would be that of a static function, which is enough to compare the type.
        _ = writeln!(c, "extern __typeof__({name}) *unused_{name};", name = row.name);
    }
    let same = format!("SAME(__typeof__(&{}), {})", row.name, pointer_type(row));
    assert(c, &same, &format!("{} is not declared as: {}", row.name, declaration::prototype(row, "")));
}

fn aggregate(c: &mut String, keyword: &str, row: &Row) {
    let name = format!("{keyword} {}", row.name);
    assert(c, &format!("sizeof({name}) == {}", row.result), &format!("size of {name}"));
    // A twin made from the table's fields gives the offsets.
    _ = writeln!(c, "{keyword} twin_{} {{", row.name);
    for (field_type, field) in fields(row) {
        _ = writeln!(c, "\t__typeof__({field_type}) {field};");
    }
    c.push_str("};\n");
    for (field_type, field) in fields(row) {
        let twin = format!("offsetof({name}, {field}) == offsetof({keyword} twin_{}, {field})", row.name);
        assert(c, &twin, &format!("offset of {name}.{field}"));
        let same = format!("SAME(__typeof__((({name} *)0)->{field}), {field_type})");
        assert(c, &same, &format!("type of {name}.{field}"));
    }
}

/// A macro exists; where the table gives a number and not a description, it has that value.
fn value(c: &mut String, header: &str, row: &Row) {
    _ = writeln!(c, "#ifndef {0}\n#error \"{0} is not defined\"\n#endif", row.name);
    let number = |ch: char| ch.is_ascii_hexdigit() || " -()xXULul".contains(ch);
    // The version header has the numbers of the release, which `headers::copy` puts there.
    if header != "doca_version"
        && row.detail.contains(|ch: char| ch.is_ascii_digit())
        && row.detail.chars().all(number)
    {
        assert(c, &format!("{} == ({})", row.name, row.detail), &row.name);
    }
}

/// Functions that a header of ours declares and no table has. `declared` is what `-aux-info` writes:
/// `/* FILE:LINE:NC */ extern TYPE NAME (PARAMETERS);`
fn unknown_functions(declared: &str, include: &Path, tables: &[Table]) -> Vec<String> {
    let known: BTreeSet<&str> =
        tables.iter().flat_map(|table| table.of(Kind::Function)).map(|row| row.name.as_str()).collect();
    let ours = format!("/* {}/", include.display());
    let mut unknown = Vec::new();
    for line in declared.lines().filter(|line| line.starts_with(&ours)) {
        let name = line.split(" (").next().and_then(|head| head.rsplit([' ', '*']).next()).unwrap_or(line);
        if !known.contains(name) {
            unknown.push(name.to_owned());
        }
    }
    unknown
}

/// Enumerators named `DOCA_…` that no table has.
fn unknown_enumerators(preprocessed: &str, tables: &[Table]) -> Vec<String> {
    let rows = tables.iter().flat_map(|table| table.of(Kind::Enum));
    let known: BTreeSet<&str> = rows.flat_map(|row| enumerators(row)).map(|(name, _)| name).collect();
    let bodies = preprocessed.split("enum ").skip(1).filter_map(|text| {
        let (head, rest) = text.split_once('{')?;
        let tag = head.trim();
        let is_tag = tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_tag.then(|| rest.split('}').next().unwrap_or(""))
    });
    let names =
        bodies.flat_map(|body| body.split(',')).map(|entry| entry.split('=').next().unwrap_or("").trim());
    names.filter(|name| name.starts_with("DOCA_") && !known.contains(name)).map(str::to_owned).collect()
}

/// Headers in the prefix that belong to no library.
fn unknown_headers(include: &Path) -> Result<Vec<String>> {
    let known: BTreeSet<String> =
        headers().chain(["doca_build_config"]).map(|name| format!("{name}.h")).collect();
    let names = place::files_below(include)?
        .into_iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    Ok(names.filter(|name| !known.contains(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |kind, name: &str, result: &str, detail: &str| Row {
            kind,
            name: name.into(),
            result: result.into(),
            detail: detail.into(),
            stability: Stability::Stable,
            errors: Vec::new(),
        };
        let rows = vec![
            row(Kind::Function, "doca_f", "const char *", "int a, struct doca_s **out"),
            row(Kind::Enum, "doca_e", "", "DOCA_A=0, DOCA_B=4"),
            row(Kind::Struct, "doca_s", "16", "void * p; uint8_t[4] raw"),
            row(Kind::Typedef, "doca_t", "", "void (*)(int)"),
            row(Kind::Macro, "DOCA_M", "", "( 16 )"),
        ];
        Table { header: "doca_x".into(), rows }
    }

    /// Compiles the assertions against this header.
    fn verdict(header: &str) -> Result<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        place::write(&dir.path().join("doca_x.h"), header)?;
        let code = dir.path().join("t.c");
        place::write(&code, program(&[table()]))?;
        let declared = dir.path().join("declared");
        let mut cc = compiler(dir.path());
        process::output(cc.args(["-fsyntax-only", "-aux-info"]).arg(&declared).arg(&code))?;
        let mut unknown = unknown_functions(&place::read(&declared)?, dir.path(), &[table()]);
        let preprocessed = process::output(compiler(dir.path()).args(["-E", "-P"]).arg(&code))?;
        unknown.extend(unknown_enumerators(&preprocessed, &[table()]));
        Ok(unknown)
    }

    const GOOD: &str = "enum doca_e { DOCA_A, DOCA_B = 4 };\nstruct doca_s { void *p; uint8_t raw[4]; };\n\
        typedef void (*doca_t)(int);\n#define DOCA_M 0x10\nconst char *doca_f(int a, struct doca_s **out);\n";

    #[test]
    fn a_header_that_agrees_passes() {
        assert_eq!(verdict(GOOD), Ok(vec![]));
    }

    #[test]
    fn each_kind_of_difference_is_found() {
        for (from, to, what) in [
            ("int a", "long a", "doca_f is not declared as"),
            ("const char", "char", "doca_f is not declared as"),
            ("struct doca_s **", "struct doca_s *", "doca_f is not declared as"),
            ("DOCA_B = 4", "DOCA_B = 5", "enum doca_e: DOCA_B"),
            ("raw[4]", "raw[5]", "type of struct doca_s.raw"),
            ("raw[4]", "raw[12]", "size of struct doca_s"),
            ("void *p; uint8_t raw[4]", "uint8_t raw[4]; void *p", "offset of struct doca_s.p"),
            ("(int)", "(char)", "typedef doca_t"),
            ("0x10", "17", "DOCA_M"),
            ("#define DOCA_M 0x10", "", "DOCA_M is not defined"),
        ] {
            let header = GOOD.replace(from, to);
            assert_ne!(header, GOOD);
            let error = verdict(&header).unwrap_err();
            assert!(error.contains(what), "{what} not in {error}");
        }
    }

    #[test]
    fn what_the_table_lacks_is_found() {
        assert_eq!(verdict(&format!("{GOOD}int *doca_g(void);\n")), Ok(vec!["doca_g".into()]));
        assert_eq!(verdict(&GOOD.replace("DOCA_A,", "DOCA_A, DOCA_C,")), Ok(vec!["DOCA_C".into()]));
    }
}
