//! How the tool ends when it does not do what it was asked for.

use crate::cli::admin::AdminError;
use crate::cli::exit::Exit;
use crate::cli::options::OptionError;

pub enum Stop {
    Exit(Exit),
    /// A text and no more.
    Said(String),
    /// An exception, which is said twice.
    Thrown {
        class: &'static str,
        text: String,
    },
}

impl Stop {
    pub fn failed(text: impl Into<String>) -> Stop {
        Stop::Thrown {
            class: "org.apache.kafka.tools.AdminCommandFailedException",
            text: text.into(),
        }
    }

    pub fn impossible(text: impl Into<String>) -> Stop {
        Stop::Thrown {
            class: "org.apache.kafka.tools.AdminOperationException",
            text: text.into(),
        }
    }

    /// Kafka asks for a minute for a broker that is not there.
    pub fn no_broker(call: &str) -> Stop {
        Stop::of_call(format!(
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node \
             assignment. Call: {call}"
        ))
    }

    /// `exception` has its class in front.
    pub fn of_call(exception: String) -> Stop {
        Stop::Thrown {
            class: "java.util.concurrent.ExecutionException",
            text: exception,
        }
    }

    pub fn into_exit(self) -> Exit {
        match self {
            Stop::Exit(exit) => exit,
            Stop::Said(text) => Exit::output(text),
            Stop::Thrown { class, text } => {
                Exit::output(format!("Error: {text}\n{class}: {text}\n"))
            }
        }
    }
}

impl From<AdminError> for Stop {
    fn from(error: AdminError) -> Stop {
        Stop::of_call(error.exception())
    }
}

impl From<OptionError> for Stop {
    /// The tool reads the arguments when it needs them, where it catches everything.
    fn from(error: OptionError) -> Stop {
        Stop::Thrown {
            class: error.class(),
            text: error.to_string(),
        }
    }
}
