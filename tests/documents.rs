//! Documents that are written from tables are as the tables are now.
//!
//! `KLAMM_WRITE_DOCS=1 cargo test --test documents` writes them anew.

#![allow(clippy::disallowed_methods)] // A test may read and write files.

/// Each document with what it should be.
fn documents() -> Vec<(&'static str, String)> {
    vec![
        (
            "docs/configuration.md",
            klamm::config::configuration_markdown(),
        ),
        ("docs/metrics.md", klamm::metrics::metrics_markdown()),
        ("docs/protocol.md", klamm::api::protocol_markdown()),
    ]
}

#[test]
fn documents_are_fresh() {
    let write = std::env::var_os("KLAMM_WRITE_DOCS").is_some();
    for (path, text) in documents() {
        if write {
            std::fs::write(path, text).unwrap();
            continue;
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let differs = written.lines().zip(text.lines()).position(|(a, b)| a != b);
        assert!(
            written == text,
            "{path} is stale from line {}: run KLAMM_WRITE_DOCS=1 cargo test --test documents",
            differs.map_or(written.lines().count().min(text.lines().count()), |line| {
                line
            }) + 1
        );
    }
}
