//! Where the log goes: standard output, for people on a terminal or as JSON.

use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::host::log_levels;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Human,
    Json,
}

/// Starts the log of this process with `level` for all loggers.
pub fn start_log(format: LogFormat, level: &'static str) {
    let (filter, handle) = reload::Layer::new(tracing_subscriber::filter::Targets::new());
    let lines = tracing_subscriber::fmt::layer();
    let lines = match format {
        LogFormat::Human => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stdout());
            lines.with_ansi(colours).with_target(false).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
    log_levels::start(level, move |targets| {
        // It fails only when the subscriber is gone, and then nobody logs.
        let _ = handle.modify(|filter| *filter = targets);
    });
}

/// A line that is there whatever the level of the log: as it is, or as JSON with the fields of the
/// log's own lines.
pub fn line(format: LogFormat, level: &str, text: &str) -> String {
    match format {
        LogFormat::Human => text.to_owned(),
        LogFormat::Json => {
            let mut timestamp = String::new();
            // Writing to a String does not fail.
            let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
            let fields = serde_json::json!({
                "timestamp": timestamp, "level": level, "message": text, "target": "klamm",
            });
            fields.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_where_the_log_is() {
        assert_eq!(line(LogFormat::Human, "ERROR", "no"), "no");
        let json = line(LogFormat::Json, "ERROR", "a \"quoted\" word");
        let fields: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(fields["level"], "ERROR");
        assert_eq!(fields["message"], "a \"quoted\" word");
        assert!(fields["timestamp"].as_str().unwrap().ends_with('Z'));
    }
}
