//! Reads options as joptsimple does, which most of Kafka's tools use.
//!
//! ```text
//! --name value   --name=value   -name value   -name=value   --flag   --   word
//! ```
//!
//! 1. A required argument is the next word, whatever it looks like; an empty `--name=` takes the
//!    next word as well.
//! 2. An optional argument is the next word unless that looks like an option.
//! 3. Names are never abbreviated: Kafka's tools switch that off.
//! 4. Words that are no options are kept apart; most tools ignore them.

use std::collections::BTreeMap;

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    None,
    Required {
        kind: &'static str,
        name: &'static str,
    },
    Optional {
        kind: &'static str,
        name: &'static str,
    },
}

/// One option of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    pub name: &'static str,
    pub arg: Arg,
    pub default: Option<&'static str>,
    pub is_required: bool,
    pub doc: &'static str,
}

pub const fn flag(name: &'static str, doc: &'static str) -> Opt {
    Opt {
        name,
        arg: Arg::None,
        default: None,
        is_required: false,
        doc,
    }
}

/// An option with a text as its argument; `arg` is what the help calls it.
pub const fn text(name: &'static str, arg: &'static str, doc: &'static str) -> Opt {
    typed(name, "String", arg, doc)
}

pub const fn typed(
    name: &'static str,
    kind: &'static str,
    arg: &'static str,
    doc: &'static str,
) -> Opt {
    Opt {
        name,
        arg: Arg::Required { kind, name: arg },
        default: None,
        is_required: false,
        doc,
    }
}

impl Opt {
    pub const fn or(mut self, default: &'static str) -> Opt {
        self.default = Some(default);
        self
    }

    pub const fn required(mut self) -> Opt {
        self.is_required = true;
        self
    }

    pub const fn optional_argument(mut self) -> Opt {
        if let Arg::Required { kind, name } = self.arg {
            self.arg = Arg::Optional { kind, name };
        }
        self
    }
}

pub const HELP: Opt = flag("help", "Print usage information.");
pub const VERSION: Opt = flag("version", "Display Kafka version.");

/// Why words are not what a tool takes. The texts are joptsimple's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error("{name} is not a recognized option")]
    Unrecognized { name: String },
    #[error("Option {name} requires an argument")]
    MissingArgument { name: String },
    #[error("Found multiple arguments for option {name}, but you asked for only one")]
    Multiple { name: String },
    #[error("Cannot parse argument '{value}' of option {name}")]
    Invalid { name: String, value: String },
    #[error("Missing required option(s) [{names}]")]
    MissingRequired { names: String },
}

impl OptionError {
    /// The class of the exception that Kafka's tools print.
    pub fn class(&self) -> &'static str {
        match self {
            OptionError::Unrecognized { .. } => "joptsimple.UnrecognizedOptionException",
            OptionError::MissingArgument { .. } => {
                "joptsimple.OptionMissingRequiredArgumentException"
            }
            OptionError::Multiple { .. } => "joptsimple.MultipleArgumentsForOptionException",
            OptionError::Invalid { .. } => "joptsimple.OptionArgumentConversionException",
            OptionError::MissingRequired { .. } => "joptsimple.MissingRequiredOptionsException",
        }
    }
}

/// The options that were given.
#[derive(Debug, Clone)]
pub struct Options {
    table: &'static [Opt],
    given: BTreeMap<&'static str, Vec<String>>,
    pub words: Vec<String>,
}

impl Options {
    pub fn parse(table: &'static [Opt], args: &[String]) -> Result<Options, OptionError> {
        let mut options = Options {
            table,
            given: BTreeMap::new(),
            words: Vec::new(),
        };
        let mut rest = args.iter().peekable();
        while let Some(word) = rest.next() {
            if word == "--" {
                options.words.extend(rest.by_ref().cloned());
                break;
            }
            if !looks_like_option(word) {
                options.words.push(word.clone());
                continue;
            }
            let (opt, inline) = find(table, word)?;
            let value = match (opt.arg, inline) {
                (Arg::None, _) => None,
                (_, Some(inline)) => Some(inline.to_owned()),
                (Arg::Required { .. }, None) => {
                    let name = opt.name.to_owned();
                    let next = rest.next().cloned();
                    Some(next.ok_or(OptionError::MissingArgument { name })?)
                }
                (Arg::Optional { .. }, None) => {
                    rest.next_if(|next| !looks_like_option(next)).cloned()
                }
            };
            options.given.entry(opt.name).or_default().extend(value);
        }
        options.check_required()?;
        Ok(options)
    }

    fn check_required(&self) -> Result<(), OptionError> {
        let missing: Vec<&str> = self
            .table
            .iter()
            .filter(|o| o.is_required)
            .map(|o| o.name)
            .collect();
        let missing: Vec<&str> = missing.into_iter().filter(|name| !self.has(name)).collect();
        if missing.is_empty() || self.has("help") || self.has("version") {
            return Ok(());
        }
        let names = missing.join(", ");
        Err(OptionError::MissingRequired { names })
    }

    /// Whether the option was given.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// All arguments of an option, or its default.
    pub fn all(&self, name: &str) -> Vec<&str> {
        match self.given.get(name).filter(|values| !values.is_empty()) {
            Some(values) => values.iter().map(String::as_str).collect(),
            None => self.default(name).into_iter().collect(),
        }
    }

    fn default(&self, name: &str) -> Option<&'static str> {
        let opt = self.table.iter().find(|opt| opt.name == name);
        debug_assert!(opt.is_some(), "{name} is no option of this tool");
        opt.and_then(|opt| opt.default)
    }

    /// The one argument of an option, or its default.
    pub fn one(&self, name: &str) -> Result<Option<&str>, OptionError> {
        let all = self.all(name);
        match all.len() {
            0 | 1 => Ok(all.first().copied()),
            _ => Err(OptionError::Multiple {
                name: name.to_owned(),
            }),
        }
    }

    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, OptionError> {
        let Some(value) = self.one(name)? else {
            return Ok(None);
        };
        let number = value.parse().map_err(|_| OptionError::Invalid {
            name: name.to_owned(),
            value: value.to_owned(),
        })?;
        Ok(Some(number))
    }
}

fn looks_like_option(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1
}

/// The option that a word names, and what stands behind its `=`.
fn find<'w>(
    table: &'static [Opt],
    word: &'w str,
) -> Result<(&'static Opt, Option<&'w str>), OptionError> {
    let long = word.strip_prefix("--");
    let bare = long.unwrap_or(&word[1..]);
    let (name, inline) = match bare.split_once('=') {
        Some((name, value)) => (name, Some(value).filter(|v| !v.is_empty())),
        None => (bare, None),
    };
    if let Some(opt) = table.iter().find(|opt| opt.name == name) {
        return Ok((opt, inline));
    }
    // A single dash with an unknown name is read as a bundle of one-letter options.
    let shown = match long {
        Some(_) => name.to_owned(),
        None => bare.chars().take(1).collect(),
    };
    Err(OptionError::Unrecognized { name: shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Opt] = &[
        text("topic", "topic", ""),
        typed("partitions", "Integer", "n", ""),
        flag("list", ""),
        text("state", "", "").optional_argument(),
        text("acks", "", "").or("1"),
    ];

    fn parse(line: &str) -> Result<Options, OptionError> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Options::parse(TABLE, &words)
    }

    #[test]
    fn the_forms_of_an_option() {
        for line in [
            "--topic a",
            "--topic=a",
            "-topic a",
            "-topic=a",
            "--topic= a",
        ] {
            assert_eq!(parse(line).unwrap().one("topic"), Ok(Some("a")), "{line}");
        }
        let options = parse("--list --topic --list x --state --acks 0").unwrap();
        assert_eq!(options.one("topic"), Ok(Some("--list")));
        assert_eq!(options.words, ["x"]);
        assert!(options.has("state") && options.all("state").is_empty());
        assert_eq!(parse("--state on").unwrap().all("state"), ["on"]);
        assert_eq!(parse("x").unwrap().one("acks"), Ok(Some("1")));
        assert_eq!(parse("-- --list").unwrap().words, ["--list"]);
    }

    #[test]
    fn what_is_refused() {
        let message = |line| parse(line).unwrap_err().to_string();
        assert_eq!(message("--top a"), "top is not a recognized option");
        assert_eq!(message("-foo"), "f is not a recognized option");
        assert_eq!(message("--topic"), "Option topic requires an argument");
        let options = parse("--partitions 1 --partitions 2 --topic a").unwrap();
        assert_eq!(
            options.number::<i32>("partitions").unwrap_err().to_string(),
            "Found multiple arguments for option partitions, but you asked for only one"
        );
        let options = parse("--partitions abc").unwrap();
        assert_eq!(
            options.number::<i32>("partitions").unwrap_err().to_string(),
            "Cannot parse argument 'abc' of option partitions"
        );
    }
}
