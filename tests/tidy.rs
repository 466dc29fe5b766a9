//! Style as a test: layers point down, pure modules stay pure, files and functions stay readable.

#![allow(clippy::disallowed_methods)] // A test may read files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, lowest first. A module may use those of lower layers, and itself.
const LAYERS: &[&[&str]] = &[
    &["types", "metrics"],
    &["host", "config"],
    &["metadata", "record", "wire"],
    &["machine", "log", "peer"],
    &["partition", "quorum"],
    &["coordinator"],
    &["api"],
    &["server"],
    &["cli"],
    &["broker"],
];

/// Modules that decide: no I/O, no clock, no task, no lock.
const PURE: &[&str] = &["types", "metrics", "metadata", "record", "wire", "machine"];
const IMPURE_WORDS: &[&str] = &[
    "tokio::",
    "std::fs",
    "std::net",
    "std::time::Instant",
    "SystemTime",
    "Mutex",
    "RwLock",
    "async fn",
];

const LINE_CHARS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The top module a source file belongs to; `None` for lib.rs and main.rs.
fn module_of(path: &Path) -> Option<String> {
    let mut parts = path.strip_prefix("src").ok()?.components();
    let first = parts.next()?.as_os_str().to_str()?.to_owned();
    parts.next().map(|_| first)
}

/// The code of a file before its `#[cfg(test)]` module at the end.
fn production_code(text: &str) -> &str {
    match text.find("\n#[cfg(test)]\nmod ") {
        Some(end) => &text[..end],
        None => text,
    }
}

fn is_test_file(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == "tests")
        || path
            .file_stem()
            .is_some_and(|s| s.to_str().unwrap().ends_with("tests"))
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules named by `crate::x` in `code`.
fn used_modules(code: &str) -> Vec<String> {
    let ident = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => used.push(ident(rest)),
            // A grouped import: the names at the first level of braces.
            Some(group) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if depth == 0 && start && c.is_alphabetic() => {
                            used.push(ident(&group[i..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    used
}

fn violations(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let name = path.display();
    let code = production_code(text);
    if let Some(module) = module_of(path) {
        match layer_of(&module) {
            None => found.push(format!("{name}: module {module} is in no layer")),
            Some(layer) => {
                for used in used_modules(code) {
                    let lower = layer_of(&used).is_none_or(|l| l < layer);
                    if used != module && !lower {
                        found.push(format!("{name}: {module} may not use {used}"));
                    }
                }
            }
        }
        if PURE.contains(&module.as_str()) && !is_test_file(path) {
            for word in IMPURE_WORDS {
                if code.contains(word) {
                    found.push(format!("{name}: {module} is pure and may not say {word}"));
                }
            }
        }
        let may_see_messages = ["api", "quorum", "peer", "cli"];
        let sees_messages = code.contains("kafka_protocol::messages") && !is_test_file(path);
        if sees_messages && !may_see_messages.contains(&module.as_str()) {
            found.push(format!(
                "{name}: {module} may not see kafka_protocol::messages"
            ));
        }
    }
    if !is_test_file(path) && code.lines().count() > FILE_LINES_MAX {
        found.push(format!(
            "{name}: more than {FILE_LINES_MAX} lines; a file holds one idea"
        ));
    }
    if !text.starts_with("//!") {
        found.push(format!("{name}: does not open with what it is for"));
    }
    for (i, line) in text.lines().enumerate() {
        let at = i + 1;
        if line.chars().count() > LINE_CHARS_MAX && !line.contains("http") && !line.contains('"') {
            found.push(format!(
                "{name}:{at}: line of more than {LINE_CHARS_MAX} characters"
            ));
        }
        for word in [
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("XX", "X:"),
        ] {
            if line.contains(word) {
                found.push(format!("{name}:{at}: {word} belongs in an issue"));
            }
        }
    }
    found
}

#[test]
fn sources_keep_the_rules() {
    let mut found = Vec::new();
    for path in rust_files(Path::new("src")) {
        found.extend(violations(&path, &fs::read_to_string(&path).unwrap()));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn an_upward_use_is_found() {
    let code = "//! Doc.\nuse crate::{types::Offset, server::{Listener}};\n";
    let found = violations(Path::new("src/log/mod.rs"), code);
    assert_eq!(found, ["src/log/mod.rs: log may not use server"]);
}

#[test]
fn a_clock_in_a_pure_module_is_found() {
    let code = "//! Doc.\nuse std::time::Instant;\n";
    let found = violations(Path::new("src/machine/groups.rs"), code);
    assert_eq!(found.len(), 1);
}

#[test]
fn documents_point_at_files_that_exist() {
    let mut missing = Vec::new();
    let mut documents = vec![PathBuf::from("README.md")];
    documents.extend(fs::read_dir("docs").unwrap().map(|e| e.unwrap().path()));
    for document in documents
        .iter()
        .filter(|d| d.extension().is_some_and(|e| e == "md"))
    {
        let text = fs::read_to_string(document).unwrap();
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            let base = document.parent().unwrap();
            if !target.is_empty() && !target.contains("://") && !base.join(target).exists() {
                missing.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The field that a line of a configuration table declares (`=> field: Type,`).
fn declared_field(line: &str) -> Option<&str> {
    let (field, _) = line.trim_start().strip_prefix("=> ")?.split_once(':')?;
    Some(field)
}

#[test]
fn configurations_that_are_said_to_be_applied_are_read() {
    let mut words = BTreeSet::new();
    let mut applied = Vec::new();
    for path in rust_files(Path::new("src")) {
        if is_test_file(&path) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = production_code(&text);
        for (at, line) in code.lines().enumerate() {
            match declared_field(line) {
                // The next line says so when only the checks of other values read it.
                Some(field) => {
                    let next = code.lines().nth(at + 1).unwrap_or_default();
                    if !next.trim_start().starts_with("no_effect") {
                        applied.push(field.to_owned());
                    }
                }
                None => {
                    let is_part = |c: char| c.is_alphanumeric() || c == '_';
                    words.extend(line.split(|c| !is_part(c)).map(str::to_owned));
                }
            }
        }
    }
    applied.retain(|field| !words.contains(field));
    assert!(applied.is_empty(), "read by nothing: {applied:?}");
    assert_eq!(declared_field("        => a_b_ms: i64,"), Some("a_b_ms"));
}
