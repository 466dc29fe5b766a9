//! Reads the text of the table. It is part of the program, so what does not parse is our bug.
//!
//! ```text
//! == 1 Fetch  versions 4-18  listeners [BROKER, CONTROLLER]  request header v2  response header v1
//!   request v4-5
//!     topics: array of            an element's fields stand two columns deeper
//!       name: string
//!     ids: compact_array? of uuid
//!     _tagged_fields:
//!       tag 0 cluster_id: compact_nullable_string
//!   response v4
//! ```

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::layout::{Api, Field, Kind, Length, Section, Sections, Struct, TaggedField};

const TAGGED: &str = "_tagged_fields";

/// The headings of the table, by ascending key.
pub(super) fn apis(text: &'static str) -> Box<[Api]> {
    let apis: Box<[Api]> = text.split("\n== ").skip(1).map(api).collect();
    assert!(apis.windows(2).all(|pair| pair[0].key < pair[1].key));
    apis
}

fn api(text: &'static str) -> Api {
    let heading = text.lines().next().expect("a heading");
    let mut parts = heading.split("  ");
    let mut next = || {
        parts
            .next()
            .unwrap_or_else(|| panic!("short heading: {heading}"))
    };
    let (key, name) = next().split_once(' ').expect("a key and a name");
    let stated = next().strip_prefix("versions ").expect("versions");
    let (range, stable) = match stated.split_once(" (stable to ") {
        Some((range, stable)) => (range, Some(stable.trim_end_matches(')'))),
        None => (stated, None),
    };
    let versions = versions(range);
    let listeners = next();
    Api {
        key: number(key),
        name,
        stable_max: stable.map_or(*versions.end(), number),
        versions,
        broker: listeners.contains("BROKER"),
        controller: listeners.contains("CONTROLLER"),
        text,
        sections: OnceLock::new(),
    }
}

/// `3`, `3-5`, or `0--1`: none.
pub(super) fn versions(text: &str) -> RangeInclusive<i16> {
    match text.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(text)..=number(text),
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse()
        .unwrap_or_else(|_| panic!("no number in the table: {text}"))
}

/// The parts of one API's text, unparsed.
pub(super) fn sections(text: &'static str) -> Sections {
    let mut requests = Vec::new();
    let mut responses = Vec::new();
    for part in text.split("\n  re").skip(1) {
        let (title, body) = part.split_once('\n').unwrap_or((part, ""));
        let (direction, range) = title.split_once(" v").expect("a direction and versions");
        let section = Section {
            versions: versions(range),
            text: body,
            layout: OnceLock::new(),
        };
        match direction {
            "quest" => requests.push(section),
            "sponse" => responses.push(section),
            other => panic!("re{other} in the table"),
        }
    }
    let flexible = requests.iter().find(|section| is_flexible(section.text));
    Sections {
        flexible_from: flexible.map(|section| *section.versions.start()),
        requests: requests.into(),
        responses: responses.into(),
    }
}

/// Whether the outermost struct has tagged fields, without parsing it.
fn is_flexible(section: &str) -> bool {
    section.lines().any(|line| {
        let name = line.strip_prefix("    ");
        name.is_some_and(|name| name.starts_with(TAGGED))
    })
}

pub(super) fn layout(section: &'static str) -> Struct {
    let lines: Vec<Line> = section.lines().filter_map(line).collect();
    let mut lines = &lines[..];
    let layout = fields(&mut lines, 4);
    assert!(
        lines.is_empty(),
        "unread lines in the table: {:?}",
        lines[0].text
    );
    layout
}

struct Line {
    indent: usize,
    text: &'static str,
}

fn line(line: &'static str) -> Option<Line> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    (!text.is_empty()).then_some(Line { indent, text })
}

/// Takes the first line when it stands at `indent`.
fn next(lines: &mut &[Line], indent: usize) -> Option<&'static str> {
    let (first, rest) = lines.split_first()?;
    let text = first.text;
    (first.indent == indent).then(|| {
        *lines = rest;
        text
    })
}

fn fields(lines: &mut &[Line], indent: usize) -> Struct {
    let mut fields = Vec::new();
    let mut tagged = None;
    while let Some(text) = next(lines, indent) {
        if text.starts_with(TAGGED) {
            tagged = Some(tagged_fields(lines, indent + 2));
        } else {
            fields.push(field(text, lines, indent));
        }
    }
    Struct {
        fields: fields.into(),
        tagged,
    }
}

fn tagged_fields(lines: &mut &[Line], indent: usize) -> Box<[TaggedField]> {
    let mut tagged = Vec::new();
    while let Some(text) = next(lines, indent) {
        let (tag, rest) = text
            .strip_prefix("tag ")
            .and_then(|text| text.split_once(' '))
            .unwrap_or_else(|| panic!("no tag in the table: {text}"));
        let field = field(rest, lines, indent);
        tagged.push(TaggedField {
            tag: number(tag),
            field,
        });
    }
    assert!(tagged.is_sorted_by_key(|t| t.tag));
    tagged.into()
}

fn field(text: &'static str, lines: &mut &[Line], indent: usize) -> Field {
    let (name, kind_text) = text
        .split_once(": ")
        .unwrap_or_else(|| panic!("no kind in the table: {text}"));
    let kind = kind(kind_text, lines, indent);
    Field { name, kind }
}

fn kind(text: &'static str, lines: &mut &[Line], indent: usize) -> Kind {
    if let Some((array, element)) = text.split_once(" of") {
        let element = match element.trim_start() {
            "" => "struct",
            element => element,
        };
        let length = Length {
            compact: array.starts_with("compact_"),
            nullable: array.ends_with('?'),
        };
        return Kind::Array(length, Box::new(kind(element, lines, indent)));
    }
    let (compact, plain) = strip(text, "compact_");
    let (nullable, plain) = strip(plain, "nullable_");
    let length = Length { compact, nullable };
    match plain {
        "boolean" => Kind::Boolean,
        "int8" => Kind::Int8,
        "int16" => Kind::Int16,
        "uint16" => Kind::Uint16,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "float64" => Kind::Float64,
        "uuid" => Kind::Uuid,
        "string" => Kind::Text(length),
        "bytes" => Kind::Bytes(length),
        "records" => Kind::Records(length),
        "struct" | "struct?" => Kind::Struct {
            nullable: plain.ends_with('?'),
            layout: Box::new(fields(lines, indent + 2)),
        },
        _ => panic!("unknown kind in the table: {text}"),
    }
}

fn strip(text: &'static str, prefix: &str) -> (bool, &'static str) {
    match text.strip_prefix(prefix) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}
