//! What a broker answered in one case, and its text in `recorded/`.
//!
//! ```text
//! # 2 Metadata {"topics": [{"name": "$a"}]}
//! = 0-5
//! 3-5  throttle_time_ms: 0
//!   topics[0].name: "$a"
//! 0-3 5  topics[0].error_code: 0
//! 4  topics[0].error_code: 3
//! ```
//!
//! `=` names the versions that took the step, `-` in a case without versions. A line without
//! versions came at all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The lines of one step at one version: a path and a value.
pub type Answer = Vec<(String, String)>;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Recording {
    /// In the order of the case.
    pub steps: Vec<(String, BTreeMap<Option<i16>, Answer>)>,
}

impl Recording {
    pub fn add(&mut self, label: &str, version: Option<i16>, answer: Answer) {
        let at = self.steps.iter().position(|(l, _)| l == label);
        let at = at.unwrap_or_else(|| {
            self.steps.push((label.to_owned(), BTreeMap::new()));
            self.steps.len() - 1
        });
        self.steps[at].1.insert(version, answer);
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (label, versions) in &self.steps {
            let all: Vec<_> = versions.keys().copied().collect();
            text.push_str(&format!("# {label}\n= {}\n", versions_text(&all)));
            for (line, versions) in merged(versions) {
                let some = if versions == all {
                    String::new()
                } else {
                    versions_text(&versions)
                };
                text.push_str(&format!("{some}  {}: {}\n", line.0, line.1));
            }
        }
        text
    }

    pub fn parse(text: &str) -> Result<Recording, String> {
        let mut recording = Recording::default();
        for line in text.lines() {
            if let Some(label) = line.strip_prefix("# ") {
                recording.steps.push((label.to_owned(), BTreeMap::new()));
                continue;
            }
            let (_, step) = recording.steps.last_mut().ok_or("no step")?;
            if let Some(versions) = line.strip_prefix("= ") {
                let versions = parse_versions(versions).ok_or("no versions")?;
                step.extend(versions.into_iter().map(|version| (version, Answer::new())));
                continue;
            }
            let (versions, line) = line.split_once("  ").ok_or("no versions")?;
            let (path, value) = line.split_once(": ").ok_or("no value")?;
            let versions = match versions {
                "" => step.keys().copied().collect(),
                some => parse_versions(some).ok_or("no versions")?,
            };
            for version in versions {
                let answer = step.get_mut(&version).ok_or("a version without the step")?;
                answer.push((path.to_owned(), value.to_owned()));
            }
        }
        Ok(recording)
    }

    pub fn read(directory: &Path, case: &str) -> Result<Recording, String> {
        let path = file(directory, case);
        let text = std::fs::read_to_string(&path);
        Recording::parse(&text.map_err(|_| "not recorded yet".to_owned())?)
    }

    pub fn write(&self, directory: &Path, case: &str) {
        let path = file(directory, case);
        let parent = path.parent().expect("below the directory");
        std::fs::create_dir_all(parent).expect("a writable directory");
        std::fs::write(path, self.text()).expect("a writable directory");
    }
}

type Line = (String, String);

/// The lines of all versions, each once, in an order that is that of every version where it can be.
fn merged(versions: &BTreeMap<Option<i16>, Answer>) -> Vec<(&Line, Vec<Option<i16>>)> {
    let mut merged: Vec<(&Line, Vec<Option<i16>>)> = Vec::new();
    for (version, answer) in versions {
        let mut at = 0;
        for line in answer {
            match merged.iter().position(|(l, _)| *l == line) {
                Some(place) => {
                    merged[place].1.push(*version);
                    at = place + 1;
                }
                None => {
                    merged.insert(at, (line, vec![*version]));
                    at += 1;
                }
            }
        }
    }
    merged
}

fn file(directory: &Path, case: &str) -> PathBuf {
    directory.join(format!("{case}.txt"))
}

/// `1-3 5`, or `-` for a case without versions.
fn versions_text(versions: &[Option<i16>]) -> String {
    let mut ranges: Vec<(i16, i16)> = Vec::new();
    for version in versions {
        let Some(version) = *version else {
            return "-".to_owned();
        };
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == version => *high = version,
            _ => ranges.push((version, version)),
        }
    }
    let ranges = ranges.iter().map(|(low, high)| match low == high {
        true => low.to_string(),
        false => format!("{low}-{high}"),
    });
    ranges.collect::<Vec<_>>().join(" ")
}

fn parse_versions(text: &str) -> Option<Vec<Option<i16>>> {
    if text == "-" {
        return Some(vec![None]);
    }
    let mut versions = Vec::new();
    for range in text.split(' ') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        versions.extend((low.parse().ok()?..=high.parse().ok()?).map(Some));
    }
    Some(versions)
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    let mut recording = Recording::default();
    let answer = |value: &str| vec![("topics[0].name".to_owned(), value.to_owned())];
    for version in [1, 2, 3, 5] {
        recording.add("1 Metadata", Some(version), answer("\"a: b\""));
    }
    recording.add("1 Metadata", Some(4), answer("null"));
    recording.add("2 Fetch", None, Answer::new());
    let text = recording.text();
    assert!(
        text.contains("\n1-3 5  topics[0].name: \"a: b\"\n"),
        "{text}"
    );
    assert_eq!(Recording::parse(&text).unwrap(), recording);
}
