//! `abi/*.tsv`: the single source of what the public headers declare and the libraries export.

use crate::Result;
use crate::place;
use crate::release::Release;

/// One row of a header's table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Return type of a function, size in bytes of a struct or union.
    pub(crate) result: String,
    /// Parameters, enumerators, fields or value, depending on the kind.
    pub(crate) detail: String,
    pub(crate) stability: Stability,
    /// The errors that the reference lists for a function, without `DOCA_ERROR_`.
    pub(crate) errors: Vec<String>,
}

/// What a row describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Function,
    Enum,
    Struct,
    Union,
    Opaque,
    Typedef,
    Macro,
}

/// How DOCA marks a function, which decides its version node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stability {
    Stable,
    Experimental,
    /// Lives in the header; not exported.
    Inline,
}

/// The table of one header.
#[derive(Debug)]
pub(crate) struct Table {
    /// `doca_dev` for `doca_dev.h`.
    pub(crate) header: String,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Reads the table of a header as the release has it.
    pub(crate) fn load(header: &str, release: Release) -> Result<Table> {
        let path = place::root().join("abi").join(header).with_extension("tsv");
        let text = place::read(&path)?;
        let mut rows = Vec::new();
        let mut renames = Vec::new();
        for (number, line) in text.lines().enumerate().skip(1) {
            let at = |what: &str| format!("{}:{}: {what}", path.display(), number + 1);
            let cells: Vec<&str> = line.split('\t').collect();
            let [kind, name, result, detail, stability, errors, since] = cells[..] else {
                return Err(at("a row has seven columns"));
            };
            if !release.has(since) {
                if let Some(later) = since.split("(later ").nth(1).and_then(|s| s.split(' ').next()) {
                    renames.push((name.to_owned(), later.to_owned()));
                }
                continue;
            }
            let detail = match since.split("(later: ").nth(1) {
                Some(later) if release != Release::V3_0 => {
                    let later = later.trim_end_matches(')');
                    detail.replace(later.trim_start_matches("const "), later)
                }
                _ => detail.to_owned(),
            };
            rows.push(Row {
                kind: Kind::parse(kind).ok_or_else(|| at("unknown kind"))?,
                name: name.trim_start_matches("struct ").trim_start_matches("union ").to_owned(),
                result: result.to_owned(),
                detail,
                stability: Stability::parse(stability).ok_or_else(|| at("unknown stability"))?,
                errors: errors.split_whitespace().map(str::to_owned).collect(),
            });
        }
        for row in &mut rows {
            for (name, later) in &renames {
                row.detail = row.detail.replace(name, later);
            }
        }
        Ok(Table { header: header.to_owned(), rows })
    }

    /// Its rows of one kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.kind == kind)
    }

    /// The functions that a library exports.
    pub(crate) fn exports(&self) -> impl Iterator<Item = &Row> {
        self.of(Kind::Function).filter(|row| row.stability != Stability::Inline)
    }
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "fn" => Kind::Function,
            "enum" => Kind::Enum,
            "struct" => Kind::Struct,
            "union" => Kind::Union,
            "opaque" => Kind::Opaque,
            "typedef" => Kind::Typedef,
            "macro" => Kind::Macro,
            _ => return None,
        })
    }
}

impl Stability {
    /// Rows without a mark (newer ones, seen in use only) count as experimental.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "stable" => Stability::Stable,
            "experimental" | "-" => Stability::Experimental,
            "inline -" => Stability::Inline,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_release() {
        let names = |release| -> Vec<String> {
            let table = Table::load("doca_dev", release).unwrap();
            table.exports().map(|row| row.name.clone()).collect()
        };
        let newer = "doca_devinfo_get_sf_index".to_owned();
        assert!(!names(Release::V3_0).contains(&newer));
        assert!(names(Release::V3_3).contains(&newer));
        assert_eq!(names(Release::V3_0).len() + 2, names(Release::V3_3).len());
    }

    #[test]
    fn a_type_that_was_renamed_or_became_const_is_followed() {
        let detail = |header, function: &str, release| {
            let table = Table::load(header, release).unwrap();
            table.rows.iter().find(|row| row.name == function).unwrap().detail.clone()
        };
        let send = "doca_sta_io_task_non_offload_rdma_send_alloc_init";
        assert!(
            detail("doca_sta_io_non_offload", send, Release::V3_0).contains("doca_sta_nvmef_completion_t")
        );
        assert!(
            detail("doca_sta_io_non_offload", send, Release::V3_3).contains("doca_sta_nvme_completion_t")
        );
        let add = "doca_sta_io_qp_add_subsystem";
        assert!(
            !detail("doca_sta_io_qp", add, Release::V3_0).contains("const struct doca_sta_subs_handle *")
        );
        assert!(detail("doca_sta_io_qp", add, Release::V3_3).contains("const struct doca_sta_subs_handle *"));
    }

    #[test]
    fn unmarked_functions_are_experimental_and_inline_ones_are_not_exported() {
        let table = Table::load("doca_version", Release::V3_3).unwrap();
        let exports: Vec<_> = table.exports().map(|row| row.name.as_str()).collect();
        assert_eq!(exports, ["doca_version_runtime"]);
    }
}
