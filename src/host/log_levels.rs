//! The levels of this process's log, changeable while it runs: what DescribeConfigs and
//! IncrementalAlterConfigs call broker loggers. A logger is a module of the crate, by path with
//! dots (`klamm.server`), or `root` for all that have no level of their own.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The logger of everything without a level of its own.
pub const ROOT: &str = "root";

const QUORUM_LIBRARY: &str = "openraft";
/// It has an error for each call to a voter that is gone, and warnings at every first start; what
/// matters of that the quorum says itself.
const QUORUM_LIBRARY_LEVEL: &str = "OFF";

/// Every logger besides the root.
pub const LOGGERS: [&str; 8] = [
    "klamm.api",
    "klamm.broker",
    "klamm.coordinator",
    "klamm.log",
    "klamm.partition",
    "klamm.quorum",
    "klamm.server",
    QUORUM_LIBRARY,
];

/// Levels by Kafka's (log4j's) names, loudest first.
const LEVELS: [(&str, LevelFilter); 7] = [
    ("TRACE", LevelFilter::TRACE),
    ("DEBUG", LevelFilter::DEBUG),
    ("INFO", LevelFilter::INFO),
    ("WARN", LevelFilter::WARN),
    ("ERROR", LevelFilter::ERROR),
    ("FATAL", LevelFilter::ERROR),
    ("OFF", LevelFilter::OFF),
];

type Apply = Box<dyn Fn(Targets) + Send + Sync>;

struct State {
    levels: BTreeMap<String, &'static str>,
    apply: Option<Apply>,
}

static STATE: RwLock<State> = RwLock::new(State {
    levels: BTreeMap::new(),
    apply: None,
});

/// A level by its name, whatever the case.
pub fn level(name: &str) -> Option<&'static str> {
    LEVELS
        .iter()
        .map(|(known, _)| *known)
        .find(|known| known.eq_ignore_ascii_case(name))
}

/// Whether there is such a logger.
pub fn is_logger(name: &str) -> bool {
    name == ROOT || LOGGERS.contains(&name)
}

/// Starts with `root` for all; `apply` is called with every change.
pub fn start(root: &'static str, apply: impl Fn(Targets) + Send + Sync + 'static) {
    let mut state = STATE.write();
    state.levels.insert(ROOT.to_owned(), root);
    let (library, level) = (QUORUM_LIBRARY.to_owned(), QUORUM_LIBRARY_LEVEL);
    state.levels.insert(library, level);
    state.apply = Some(Box::new(apply));
    state.apply_now();
}

/// Gives `logger` a level, or with `None` that of the root.
pub fn set(logger: &str, level: Option<&'static str>) {
    let mut state = STATE.write();
    match level {
        Some(level) => state.levels.insert(logger.to_owned(), level),
        None => state.levels.remove(logger),
    };
    state.apply_now();
}

/// Every logger with the level that counts for it.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let state = STATE.read();
    let root = state.levels.get(ROOT).copied().unwrap_or("INFO");
    let level = |name: &str| state.levels.get(name).copied().unwrap_or(root);
    let loggers = LOGGERS.iter().map(|name| (*name, level(name)));
    loggers.chain([(ROOT, root)]).collect()
}

impl State {
    fn apply_now(&self) {
        let Some(apply) = &self.apply else { return };
        let filter = |name: &str| {
            LEVELS
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(LevelFilter::INFO, |(_, f)| *f)
        };
        let mut targets = Targets::new();
        for (logger, level) in &self.levels {
            targets = match logger.as_str() {
                ROOT => targets.with_default(filter(level)),
                logger => targets.with_target(logger.replace('.', "::"), filter(level)),
            };
        }
        apply(targets);
    }
}
