//! How a command ends that does not end well, and what it prints then.
//!
//! Kafka's tools answer on both streams: most say what they could not do on standard output, a bad
//! command line on standard error. The stack traces they add are left out.

use super::options::{Opt, OptionError};
use super::usage;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: u8,
    pub out: String,
    pub err: String,
}

pub type Done = Result<(), Exit>;

impl Exit {
    /// Says `text` on standard error and ends with 1.
    pub fn error(text: impl Into<String>) -> Exit {
        Exit {
            code: 1,
            out: String::new(),
            err: line(text.into()),
        }
    }

    /// Says `text` on standard output and ends with 1.
    pub fn output(text: impl Into<String>) -> Exit {
        Exit {
            code: 1,
            out: line(text.into()),
            err: String::new(),
        }
    }

    /// Ends with this code and says nothing.
    pub fn code(code: u8) -> Exit {
        Exit {
            code,
            ..Exit::default()
        }
    }

    /// Says `text` and how the command is called.
    pub fn usage(text: &str, options: &[Opt]) -> Exit {
        let table = usage::table(options);
        Exit::error(format!("{text}\n{table}"))
    }

    /// An exception that a tool catches and prints after its message.
    pub fn caught(class: &str, message: &str) -> Exit {
        Exit::error(format!("{message}\n{class}: {message}"))
    }

    /// An exception that a tool does not catch.
    pub fn uncaught(class: &str, message: &str) -> Exit {
        Exit::error(format!("Exception in thread \"main\" {class}: {message}"))
    }
}

fn line(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A tool that does not catch what the parser throws.
impl From<OptionError> for Exit {
    fn from(error: OptionError) -> Exit {
        Exit::uncaught(error.class(), &error.to_string())
    }
}
