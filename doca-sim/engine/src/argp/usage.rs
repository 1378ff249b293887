//! The text that `--help` prints.

use super::param::{Command, Kind, Param};
use std::fmt::Write;
use std::sync::Arc;

/// How wide the column of flags may become before descriptions go to lines of their own.
const WIDEST: usize = 44;

/// Where lines of descriptions are broken.
const PAGE: usize = 100;

/// The help for the innermost of a chain of commands.
pub(super) fn text(program: &str, chain: &[Arc<Command>], built_in: &[Arc<Param>], dpdk: bool) -> String {
    let Some((innermost, outer)) = chain.split_last() else { return String::new() };
    let shown = |param: &&Arc<Param>| !param.hidden;
    let inherited = outer.iter().flat_map(|command| &command.params).filter(|param| param.inherited);
    let own: Vec<_> = inherited.chain(&innermost.params).filter(shown).map(flag_row).collect();
    let commands: Vec<_> =
        innermost.commands.iter().filter(|command| !command.hidden).map(command_row).collect();
    let general: Vec<_> = built_in.iter().map(flag_row).collect();

    let mut out = format!("Usage: {program}");
    for command in chain {
        out.extend(command.name.iter().flat_map(|name| [" ", name]));
    }
    for (wanted, word) in [
        (dpdk, " [DPDK flags --]"),
        (true, " [flags]"),
        (!commands.is_empty(), " <command> [command's flags]"),
    ] {
        out += if wanted { word } else { "" };
    }
    out.push('\n');
    if let (Some(_), Some(description)) = (&innermost.name, &innermost.description) {
        out += &format!("\n{description}\n");
    }
    section(&mut out, "Program flags", &own);
    section(&mut out, "Commands", &commands);
    section(&mut out, "General flags", &general);
    out
}

type Row = (String, String);

fn flag_row(param: &Arc<Param>) -> Row {
    let mut left = match &param.short {
        Some(_) => param.title(),
        None => format!("    {}", param.title()),
    };
    let value = match (&param.arguments, param.kind) {
        (Some(arguments), _) => arguments,
        (None, Kind::String) => "<text>",
        (None, Kind::Int) => "<number>",
        (None, _) => "",
    };
    left.extend([" ", value].iter().filter(|_| !value.is_empty()).copied());
    let mut right = param.description.clone().unwrap_or_default();
    let notes: Vec<_> =
        [(param.mandatory, "mandatory"), (param.multiple, "may be repeated"), (param.singular, "alone")]
            .into_iter()
            .filter_map(|(holds, note)| holds.then_some(note))
            .collect();
    if !notes.is_empty() {
        right += &format!(" ({})", notes.join(", "));
    }
    (left, right)
}

fn command_row(command: &Arc<Command>) -> Row {
    (command.name.clone().unwrap_or_default(), command.description.clone().unwrap_or_default())
}

fn section(out: &mut String, title: &str, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    // Writing to a String cannot fail.
    _ = writeln!(out, "\n{title}:");
    let widths = rows.iter().map(|(left, _)| left.chars().count());
    let column = widths.filter(|width| *width <= WIDEST).max().unwrap_or(WIDEST);
    for (left, right) in rows {
        let mut left = left.as_str();
        if left.chars().count() > column {
            _ = writeln!(out, "  {left}");
            left = "";
        }
        for line in right.lines().flat_map(|line| wrap(line, PAGE - 4 - column)) {
            _ = writeln!(out, "  {left:column$}  {line}");
            left = "";
        }
    }
}

/// Breaks a line between words; a word that is longer than the width stays whole.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(line) if last == 0 || last + 1 + word.chars().count() <= width => {
                line.extend([if last == 0 { "" } else { " " }, word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
