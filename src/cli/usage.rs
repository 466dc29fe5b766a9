//! The help of a tool in two columns, laid out as joptsimple lays it out in 80 characters.
//!
//! The descriptions are Klamm's own; names, arguments and defaults are Kafka's.

use std::fmt::Write;

use super::options::{Arg, Opt};

const WIDTH: usize = 80;
const GAP: usize = 2;

/// The table of options, by name.
pub fn table(options: &[Opt]) -> String {
    let mut sorted: Vec<&Opt> = options.iter().collect();
    sorted.sort_by_key(|opt| opt.name);
    let any_required = sorted.iter().any(|opt| opt.is_required);
    let heading = match any_required {
        true => "Option (* = required)",
        false => "Option",
    };
    let mut rows = vec![
        (heading.to_owned(), "Description".to_owned()),
        ("-".repeat(heading.len()), "-".repeat("Description".len())),
    ];
    rows.extend(sorted.into_iter().map(|opt| (left(opt), right(opt))));
    let widest = |column: fn(&(String, String)) -> &str| {
        let widths = rows.iter().map(|row| column(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let left_width = widest(|row| &row.0).min((WIDTH - GAP) / 2);
    let right_width = widest(|row| &row.1).min(WIDTH - left_width - GAP);
    let mut out = String::new();
    for (left, right) in &rows {
        let left = pieces(left, left_width);
        let right = pieces(right, right_width);
        for line in 0..left.len().max(right.len()) {
            let piece = |column: &[String]| column.get(line).cloned().unwrap_or_default();
            let (left, right) = (piece(&left), piece(&right));
            let _ = writeln!(out, "{left:left_width$}  {right:right_width$}");
        }
    }
    out
}

fn left(opt: &Opt) -> String {
    let star = if opt.is_required { "* " } else { "" };
    let argument = |kind: &str, name: &str| match name {
        "" => kind.to_owned(),
        name => format!("{kind}: {name}"),
    };
    match opt.arg {
        Arg::None => format!("{star}--{}", opt.name),
        Arg::Required { kind, name } => format!("{star}--{} <{}>", opt.name, argument(kind, name)),
        Arg::Optional { kind, name } => format!("{star}--{} [{}]", opt.name, argument(kind, name)),
    }
}

fn right(opt: &Opt) -> String {
    match opt.default {
        Some(default) => format!("{} (default: {default})", opt.doc),
        None => opt.doc.to_owned(),
    }
}

/// Cuts a text into lines of at most `width`, those after the first indented by two.
fn pieces(text: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive([' ', '-', ',']) {
        if line.chars().count() + word.chars().count() > width && !line.trim().is_empty() {
            pieces.push(line.trim_end().to_owned());
            line = format!("  {word}");
        } else {
            line.push_str(word);
        }
    }
    if !line.is_empty() {
        pieces.push(line.trim_end().to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{flag, text, typed};

    #[test]
    fn columns_as_joptsimple_prints_them() {
        let options = [
            text(
                "topic",
                "topic",
                "The topic to look at, which may also be a pattern of names.",
            ),
            flag("list", "List."),
            typed("n", "Integer", "", "Count.").or("1"),
        ];
        let lines = [
            "Option                   Description",
            "------                   -----------",
            "--list                   List.",
            "--n <Integer>            Count. (default: 1)",
            "--topic <String: topic>  The topic to look at, which may also be a pattern of",
            "                           names.",
        ];
        let table = table(&options);
        let ours: Vec<&str> = table.lines().map(str::trim_end).collect();
        assert_eq!(ours, lines);
    }
}
