//! What Kafka's tools do with their options before they do anything else
//! (`org.apache.kafka.server.util.CommandLineUtils`).

use super::exit::{Done, Exit};
use super::options::{Opt, OptionError, Options};

/// The version whose tools these are.
pub const KAFKA_VERSION: &str = "4.4.0";

/// `--help`, `--version`, or nothing at all: prints and ends.
pub fn help_or_version(options: &Options, table: &[Opt], purpose: &str) -> Done {
    if options.has("help") {
        return Err(Exit::usage(purpose, table));
    }
    version(options)
}

fn version(options: &Options) -> Done {
    match options.has("version") {
        true => Err(Exit {
            code: 0,
            out: format!("{KAFKA_VERSION}\n"),
            err: String::new(),
        }),
        false => Ok(()),
    }
}

/// Parses, and prints the help where Kafka does.
pub fn parse(table: &'static [Opt], args: &[String], purpose: &str) -> Result<Options, Exit> {
    let options = Options::parse(table, args)?;
    help_or_version(&options, table, purpose)?;
    Ok(options)
}

/// As [`parse`], for a tool that catches the exceptions of its parser.
pub fn parse_caught(
    table: &'static [Opt],
    args: &[String],
    purpose: &str,
) -> Result<Options, Exit> {
    let options = Options::parse(table, args).map_err(caught)?;
    help_or_version(&options, table, purpose)?;
    Ok(options)
}

pub fn caught(error: OptionError) -> Exit {
    Exit::caught(error.class(), &error.to_string())
}

pub fn require(options: &Options, table: &[Opt], names: &[&str]) -> Done {
    match names.iter().find(|name| !options.has(name)) {
        None => Ok(()),
        Some(name) => {
            let text = format!("Missing required argument \"[{name}]\"");
            Err(Exit::usage(&text, table))
        }
    }
}

/// Refuses `used` together with one of `invalid`.
pub fn refuse(options: &Options, table: &[Opt], used: &str, invalid: &[&str]) -> Done {
    if !options.has(used) {
        return Ok(());
    }
    match invalid.iter().find(|name| options.has(name)) {
        None => Ok(()),
        Some(name) => {
            let text = format!("Option \"[{used}]\" can't be used with option \"[{name}]\"");
            Err(Exit::usage(&text, table))
        }
    }
}

/// Kafka's `parseKeyValueArgs`: `name=value`, where only the first `=` counts.
pub fn key_value_pairs<'a>(
    pairs: impl IntoIterator<Item = &'a str>,
    accepts_missing: bool,
) -> Result<Vec<(String, String)>, Exit> {
    let mut read = Vec::new();
    for pair in pairs {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, value),
            None => (pair, ""),
        };
        if value.is_empty() && !accepts_missing || name.is_empty() {
            let text = format!("Missing value for key {name}");
            return Err(Exit::uncaught("java.lang.IllegalArgumentException", &text));
        }
        read.push((name.to_owned(), value.to_owned()));
    }
    Ok(read)
}
