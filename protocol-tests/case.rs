//! Case files: what is sent, in which order. protocol-tests/README.md describes the format.

use std::ops::RangeInclusive;
use std::path::Path;

#[derive(Debug)]
pub struct Case {
    /// The path below `cases/`, without its ending.
    pub name: String,
    /// The API that `versions` names: its requests without a version go out at each of these.
    pub versions: Option<(String, RangeInclusive<i16>)>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub struct Step {
    /// The line of the statement, for messages.
    pub line: usize,
    /// What the recording shows of the statement.
    pub label: String,
    /// The versions of the case that take this step.
    pub only: Option<RangeInclusive<i16>>,
    pub action: Action,
}

#[derive(Debug, Clone)]
pub enum Action {
    /// Gives a variable a topic name that nobody else has.
    Name(String),
    /// The same, and makes the topic: `topic a partitions=2 retention.ms=-1`.
    Topic(String, Vec<(String, String)>),
    /// Gives a variable the value at a path of the last answer.
    Let(String, String),
    Request(Request),
    Send(Request),
    /// Sends what is not answered: Produce with acks=0.
    SendOnly(Request),
    /// Reads the next answer; the fields named are not shown.
    Receive(String, Vec<String>),
    HalfClose(String),
    /// Bytes as they are.
    Raw(String, String),
    /// The same, where the broker waits for more.
    Waits(String, String),
    /// Bytes as one frame, and whether to leave out what belongs to other cases.
    Frame(String, String, bool),
    Sweep(String, Request),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub api: String,
    pub version: Option<i16>,
    pub connection: String,
    /// Leave out what belongs to other cases.
    pub own: bool,
    /// The order of arrays is part of the answer.
    pub ordered: bool,
    pub quiet: bool,
    /// Ask again until the answer has this line.
    pub until: Option<(String, String)>,
    /// The bytes that a sweep leaves alone.
    pub except: Vec<usize>,
    pub body: String,
}

impl Step {
    /// Whether the run of the case at this version takes the step.
    pub fn is_for(&self, version: Option<i16>) -> bool {
        match (&self.only, version) {
            (Some(only), Some(version)) => only.contains(&version),
            _ => true,
        }
    }
}

const FIRST: &str = "a";

impl Case {
    pub fn read_all(directory: &Path) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut pending = vec![directory.to_owned()];
        while let Some(at) = pending.pop() {
            for entry in std::fs::read_dir(&at).expect("the cases") {
                let path = entry.expect("the cases").path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let name = path.strip_prefix(directory).expect("below it");
                    let name = name.with_extension("").display().to_string();
                    let text = std::fs::read_to_string(&path).expect("a readable case");
                    cases.push(Case::parse(name, &text));
                }
            }
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        cases
    }

    pub fn parse(name: String, text: &str) -> Case {
        let mut case = Case {
            name,
            versions: None,
            steps: Vec::new(),
        };
        for (line, statement) in statements(text) {
            let parsed = case.add(line, &statement);
            parsed.unwrap_or_else(|e| panic!("{}:{line}: {e}", case.name));
        }
        case
    }

    fn add(&mut self, line: usize, statement: &str) -> Result<(), String> {
        if let Some(rest) = statement.strip_prefix("versions ") {
            let (api, range) = rest.split_once(' ').ok_or("versions API LOW-HIGH")?;
            self.versions = Some((api.to_owned(), range_of(range)?));
            return Ok(());
        }
        let (only, statement) = match statement.strip_prefix("if ") {
            Some(rest) => {
                let (range, rest) = rest.split_once(": ").ok_or("if LOW-HIGH: statement")?;
                (Some(range_of(range)?), rest)
            }
            None => (None, statement),
        };
        let action = action(statement)?;
        let number = self.steps.len() + 1;
        self.steps.push(Step {
            line,
            label: format!("{number} {}", label_of(statement)),
            only,
            action,
        });
        Ok(())
    }

    /// The versions to run the case at; a case without `versions` runs once.
    pub fn runs(&self) -> Vec<Option<i16>> {
        match &self.versions {
            Some((_, range)) => range.clone().map(Some).collect(),
            None => vec![None],
        }
    }
}

/// Statements with their line: comments dropped, indented lines joined to the one they continue.
fn statements(text: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match statements.last_mut() {
            Some((_, last)) if line.starts_with(' ') => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => statements.push((i + 1, line.trim().to_owned())),
        }
    }
    statements
}

fn range_of(text: &str) -> Result<RangeInclusive<i16>, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("no version: {text}"));
    match text.split_once('-') {
        Some((low, high)) => Ok(number(low)?..=number(high)?),
        None => Ok(number(text)?..=number(text)?),
    }
}

fn label_of(statement: &str) -> String {
    const CHARS_MAX: usize = 90;
    match statement.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", &statement[..end]),
        None => statement.to_owned(),
    }
}

fn action(statement: &str) -> Result<Action, String> {
    let (word, rest) = statement.split_once(' ').unwrap_or((statement, ""));
    let on_connection = |text: &str| -> (String, String) {
        match text.strip_prefix('@') {
            Some(text) => {
                let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
                (name.to_owned(), rest.to_owned())
            }
            None => (FIRST.to_owned(), text.to_owned()),
        }
    };
    Ok(match word {
        "name" => Action::Name(rest.to_owned()),
        "topic" => {
            let mut words = rest.split(' ');
            let name = words.next().ok_or("topic NAME")?;
            let options = words.map(|word| {
                let (key, value) = word.split_once('=').ok_or("topic NAME key=value")?;
                Ok((key.to_owned(), value.to_owned()))
            });
            Action::Topic(name.to_owned(), options.collect::<Result<_, String>>()?)
        }
        "let" => {
            let (name, path) = rest.split_once(" = ").ok_or("let NAME = PATH")?;
            Action::Let(name.to_owned(), path.to_owned())
        }
        "send" => Action::Send(request(rest)?),
        "send-only" => Action::SendOnly(request(rest)?),
        "receive" => {
            let (connection, rest) = on_connection(rest);
            let hidden = rest
                .split_whitespace()
                .map(|word| match word.strip_prefix("without=") {
                    Some(field) => Ok(field.to_owned()),
                    None => Err(format!("what is {word}?")),
                });
            Action::Receive(connection, hidden.collect::<Result<_, _>>()?)
        }
        "half-close" => Action::HalfClose(on_connection(rest).0),
        "raw" => {
            let (connection, hex) = on_connection(rest);
            Action::Raw(connection, hex)
        }
        "waits" => {
            let (connection, hex) = on_connection(rest);
            Action::Waits(connection, hex)
        }
        "frame" => {
            let (own, rest) = match rest.strip_prefix("own ") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            let (connection, hex) = on_connection(rest);
            Action::Frame(connection, hex, own)
        }
        "sweep" => {
            let (kind, rest) = rest.split_once(' ').ok_or("sweep KIND API {}")?;
            Action::Sweep(kind.to_owned(), request(rest)?)
        }
        _ => Action::Request(request(statement)?),
    })
}

fn request(statement: &str) -> Result<Request, String> {
    let (words, body) = match statement.find('{') {
        Some(at) => statement.split_at(at),
        None => (statement, "{}"),
    };
    let mut request = Request {
        api: String::new(),
        version: None,
        connection: FIRST.to_owned(),
        own: false,
        ordered: false,
        quiet: false,
        until: None,
        except: Vec::new(),
        body: body.to_owned(),
    };
    for word in words.split_whitespace() {
        let version = word.strip_prefix('v').and_then(|v| v.parse().ok());
        if let Some(connection) = word.strip_prefix('@') {
            request.connection = connection.to_owned();
        } else if let Some(until) = word.strip_prefix("until=") {
            let (path, value) = until.split_once(':').ok_or("until=PATH:VALUE")?;
            request.until = Some((path.to_owned(), value.to_owned()));
        } else if let Some(at) = word.strip_prefix("except=") {
            request.except.push(at.parse().map_err(|_| "except=BYTE")?);
        } else if version.is_some() {
            request.version = version;
        } else {
            match word {
                "own" => request.own = true,
                "ordered" => request.ordered = true,
                "quiet" => request.quiet = true,
                api if request.api.is_empty() => request.api = api.to_owned(),
                other => return Err(format!("what is {other}?")),
            }
        }
    }
    match klamm::wire::api_by_name(&request.api) {
        Some(_) => Ok(request),
        None => Err(format!("no API is called {:?}", request.api)),
    }
}
