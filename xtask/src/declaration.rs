//! C declarations as the tables write them.

use crate::table::Row;

/// The names of a function's parameters, in order.
pub(crate) fn parameter_names(row: &Row) -> Vec<&str> {
    if row.detail == "void" || row.detail.is_empty() {
        return Vec::new();
    }
    row.detail.split(',').map(str::trim).filter(|part| *part != "...").map(last_word).collect()
}

/// `RETURN name(PARAMETERS)`, with a prefix before the name.
pub(crate) fn prototype(row: &Row, prefix: &str) -> String {
    let gap = if row.result.ends_with('*') { "" } else { " " };
    format!("{}{gap}{prefix}{}({})", row.result, row.name, row.detail)
}

/// The type of a pointer to the function.
pub(crate) fn pointer_type(row: &Row) -> String {
    format!("{} (*)({})", row.result, row.detail)
}

/// The fields of a struct as `(type, name)`.
pub(crate) fn fields(row: &Row) -> Vec<(&str, &str)> {
    row.detail
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let name = last_word(part);
            (part[..part.len() - name.len()].trim(), name)
        })
        .collect()
}

/// The enumerators of an enum as `(name, value)`.
pub(crate) fn enumerators(row: &Row) -> Vec<(&str, &str)> {
    row.detail.split(',').filter_map(|part| part.trim().split_once('=')).collect()
}

fn last_word(text: &str) -> &str {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = text.rfind(|c| !word(c)).map_or(0, |at| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Kind, Stability};

    fn row(result: &str, detail: &str) -> Row {
        Row {
            kind: Kind::Function,
            name: "f".into(),
            result: result.into(),
            detail: detail.into(),
            stability: Stability::Stable,
            errors: Vec::new(),
        }
    }

    #[test]
    fn names_of_parameters_and_fields() {
        let f = row("const char *", "const struct a ***list, uint8_t raw, const char *format, ...");
        assert_eq!(parameter_names(&f), ["list", "raw", "format"]);
        assert_eq!(
            prototype(&f, "sim_"),
            "const char *sim_f(const struct a ***list, uint8_t raw, const char *format, ...)"
        );
        assert!(parameter_names(&row("void", "void")).is_empty());
        let s = row("16", "const char * name; uint8_t[16] raw");
        assert_eq!(fields(&s), [("const char *", "name"), ("uint8_t[16]", "raw")]);
        assert_eq!(enumerators(&row("", "A=0, B=1")), [("A", "0"), ("B", "1")]);
    }
}
