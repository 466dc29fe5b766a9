//! Recorded against seen, field by field; and the list of what differs on purpose.

use std::collections::BTreeSet;
use std::path::Path;

use crate::recording::{Answer, Recording};

/// One line of differences.txt: `CASE | STEP | PATH | REASON`. `*` stands for any step, or for any
/// text within a case's name or a path.
#[derive(Debug)]
struct Difference {
    case: String,
    step: String,
    path: String,
    line: String,
}

#[derive(Debug, Default)]
pub struct Differences {
    listed: Vec<Difference>,
}

impl Differences {
    pub fn read(file: &Path) -> Differences {
        Differences::parse(&std::fs::read_to_string(file).expect("a list of differences"))
    }

    fn parse(text: &str) -> Differences {
        let lines = text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        let parse = |line: &str| {
            let parts: Vec<&str> = line.split(" | ").collect();
            let [case, step, path, _reason] = parts[..] else {
                panic!("CASE | STEP | PATH | REASON in differences.txt: {line}");
            };
            Difference {
                case: case.to_owned(),
                step: step.to_owned(),
                path: path.to_owned(),
                line: line.to_owned(),
            }
        };
        Differences {
            listed: lines.map(parse).collect(),
        }
    }

    fn find(&self, case: &str, step: &str, path: &str) -> Option<usize> {
        self.listed.iter().position(|d| {
            matches(&d.case, case) && (d.step == "*" || d.step == step) && matches(&d.path, path)
        })
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((start, rest)) => path.strip_prefix(start).is_some_and(|path| {
            let ends = path.char_indices().map(|(i, _)| i).chain([path.len()]);
            ends.into_iter().any(|i| matches(rest, &path[i..]))
        }),
    }
}

pub struct Report<'a> {
    listed: &'a Differences,
    used: BTreeSet<usize>,
    compared: usize,
    cases: BTreeSet<String>,
    failures: Vec<String>,
}

impl<'a> Report<'a> {
    pub fn new(listed: &'a Differences) -> Self {
        Report {
            listed,
            used: BTreeSet::new(),
            compared: 0,
            cases: BTreeSet::new(),
            failures: Vec::new(),
        }
    }

    /// Holds what came back against what is recorded of the case.
    pub fn add_result(&mut self, case: &str, result: &Result<Recording, String>) {
        match (result, Recording::read(&crate::directory("recorded"), case)) {
            (Ok(seen), Ok(expected)) => self.add(case, &expected, seen),
            (Err(error), _) => self.fail(case, error.clone()),
            (_, Err(error)) => self.fail(case, error),
        }
    }

    pub fn first_failure(&self) -> Option<&String> {
        self.failures.first()
    }

    fn fail(&mut self, case: &str, error: String) {
        self.cases.insert(case.to_owned());
        self.failures.push(format!("{case}: {error}"));
    }

    fn add(&mut self, case: &str, expected: &Recording, seen: &Recording) {
        self.cases.insert(case.to_owned());
        let labels = |r: &Recording| r.steps.iter().map(|(l, _)| l.clone()).collect::<Vec<_>>();
        if labels(expected) != labels(seen) {
            let error = "the case has changed since it was recorded".to_owned();
            return self.fail(case, error);
        }
        for ((label, expected), (_, seen)) in expected.steps.iter().zip(&seen.steps) {
            for (version, expected) in expected {
                let seen = seen.get(version).cloned().unwrap_or_default();
                self.add_answer(case, label, *version, expected, &seen);
            }
        }
    }

    fn add_answer(
        &mut self,
        case: &str,
        label: &str,
        version: Option<i16>,
        expected: &Answer,
        seen: &Answer,
    ) {
        self.compared += 1;
        let find = |answer: &Answer, path: &str| {
            let line = answer.iter().find(|(p, _)| p == path);
            line.map_or("nothing".to_owned(), |(_, value)| value.clone())
        };
        let step = label.split(' ').next().unwrap_or_default();
        let mut paths: Vec<&String> = expected.iter().map(|(path, _)| path).collect();
        paths.extend(
            seen.iter()
                .map(|(path, _)| path)
                .filter(|p| expected.iter().all(|(path, _)| path != *p)),
        );
        for path in paths {
            let (expected, seen) = (find(expected, path), find(seen, path));
            if expected == seen {
                continue;
            }
            match self.listed.find(case, step, path) {
                Some(at) => {
                    self.used.insert(at);
                }
                None => {
                    let version = version.map_or(String::new(), |v| format!(" v{v}"));
                    self.failures.push(format!(
                        "{case}{version} [{label}] {path}: expected {expected}, seen {seen}"
                    ));
                }
            }
        }
    }

    pub fn finish(mut self) {
        for (at, difference) in self.listed.listed.iter().enumerate() {
            let was_run = self
                .cases
                .iter()
                .any(|case| matches(&difference.case, case));
            if !self.used.contains(&at) && was_run {
                let line = &difference.line;
                self.failures
                    .push(format!("listed, but does not differ: {line}"));
            }
        }
        let failed = self.failures.len();
        let (answers, cases) = (self.compared, self.cases.len());
        let summary = format!("{answers} answers in {cases} cases, {failed} differences");
        println!("{summary}");
        assert!(failed == 0, "{}\n{summary}", self.failures.join("\n"));
    }
}

#[test]
fn differences_are_found_and_listed_ones_must_differ() {
    let listed = Differences::parse("# why\nc | 1 | a[*].b | a reason\nc | 2 | x | another\n");
    let recording = |value: &str| {
        let mut recording = Recording::default();
        for label in ["1 Fetch", "2 Fetch"] {
            let answer = vec![("a[7].b".to_owned(), value.to_owned())];
            recording.add(label, Some(3), answer);
        }
        recording
    };
    let mut report = Report::new(&listed);
    report.add("c", &recording("1"), &recording("2"));
    assert_eq!(
        report.failures,
        ["c v3 [2 Fetch] a[7].b: expected 1, seen 2"]
    );
    assert_eq!(report.used, BTreeSet::from([0]));
    let caught = std::panic::catch_unwind(move || report.finish());
    let message = *caught.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("does not differ: c | 2 | x"), "{message}");
}
