//! Where the log goes: standard output, for people on a terminal or as JSON.

use tracing_subscriber::Layer;
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
