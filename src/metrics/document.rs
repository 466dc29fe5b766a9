//! docs/metrics.md, written from the table.

use std::fmt::Write;

use super::table::{Area, METRICS, MetricRow};

const HEAD: &str = include_str!("document_head.md");

/// The whole document.
pub fn metrics_markdown() -> String {
    let mut text = HEAD.to_owned();
    for area in Area::ALL {
        let _ = writeln!(text, "\n### {}\n", area.title());
        text.push_str("| Name | Kind | Labels | What it is | In Kafka |\n|---|---|---|---|---|\n");
        for row in METRICS.iter().filter(|row| row.area == *area) {
            line(&mut text, row);
        }
    }
    text
}

fn line(text: &mut String, row: &MetricRow) {
    let labels: Vec<String> = row.labels.iter().map(|l| format!("`{l}`")).collect();
    let kafka = match row.kafka {
        "" => "-".to_owned(),
        kafka => format!("`{kafka}`"),
    };
    let _ = writeln!(
        text,
        "| `{}` | {} | {} | {} | {kafka} |",
        row.name,
        row.kind.name(),
        labels.join(", "),
        row.help,
    );
}
