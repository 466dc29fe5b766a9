//! Prometheus' text format, version 0.0.4.
//!
//! ```text
//! # HELP klamm_x_total What it counts.
//! # TYPE klamm_x_total counter
//! klamm_x_total{api="Fetch"} 12
//! ```
//!
//! 1. The samples of a metric stand together, behind its two lines.
//! 2. A value of a label may be any text; backslash, quote and line feed are escaped.

use std::fmt::{Display, Write};

use super::counter::{BOUNDS_S, Times};
use super::table::MetricRow;

/// The text of one scrape.
#[derive(Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// What the answer is to be called in `Content-Type`.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins the samples of a metric.
    pub fn family(&mut self, row: &'static MetricRow) -> Family<'_> {
        let (name, kind) = (row.name, row.kind.name());
        let text = &mut self.text;
        text.push_str("# HELP ");
        text.push_str(name);
        text.push(' ');
        escape(text, row.help, false);
        text.push_str("\n# TYPE ");
        text.push_str(name);
        text.push(' ');
        text.push_str(kind);
        text.push('\n');
        Family { text, row }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// Takes the samples of one metric.
pub struct Family<'a> {
    text: &'a mut String,
    row: &'static MetricRow,
}

impl Family<'_> {
    /// One sample; `labels` are the values of the row's labels.
    pub fn put(&mut self, labels: &[&str], value: impl Display) {
        self.sample("", labels, None, value);
    }

    /// The samples of one histogram.
    pub fn put_times(&mut self, labels: &[&str], times: &Times) {
        // Taken once: the buckets and the count have to agree.
        let cumulative = times.cumulative();
        let [within @ .., count] = cumulative;
        for (bound, within) in BOUNDS_S.iter().zip(within) {
            self.sample("_bucket", labels, Some(bound), within);
        }
        self.sample("_bucket", labels, Some(&"+Inf"), count);
        self.sample("_sum", labels, None, times.sum_s());
        self.sample("_count", labels, None, count);
    }

    fn sample(
        &mut self,
        suffix: &str,
        labels: &[&str],
        bound: Option<&dyn Display>,
        value: impl Display,
    ) {
        debug_assert_eq!(labels.len(), self.row.labels.len(), "{}", self.row.name);
        let text = &mut *self.text;
        text.push_str(self.row.name);
        text.push_str(suffix);
        let mut separator = '{';
        for (name, value) in self.row.labels.iter().zip(labels) {
            text.push(separator);
            separator = ',';
            text.push_str(name);
            text.push_str("=\"");
            escape(text, value, true);
            text.push('"');
        }
        if let Some(bound) = bound {
            let _ = write!(text, "{separator}le=\"{bound}\"");
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

fn escape(text: &mut String, value: &str, is_label: bool) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if is_label => text.push_str("\\\""),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Metric;

    #[test]
    fn samples_are_written_as_prometheus_reads_them() {
        let mut exposition = Exposition::default();
        let row = Metric::LogDirectoryOffline.row();
        let mut family = exposition.family(row);
        family.put(&["/a\\b\"c\nd"], 1);
        let mut family = exposition.family(Metric::RequestDuration.row());
        let times = Times::default();
        times.note(Duration::from_millis(1500));
        family.put_times(&["Fetch"], &times);
        let text = exposition.into_text();
        let samples: Vec<&str> = text.lines().filter(|l| !l.starts_with("# HELP")).collect();
        assert_eq!(
            samples,
            [
                "# TYPE klamm_log_directory_offline gauge",
                r#"klamm_log_directory_offline{directory="/a\\b\"c\nd"} 1"#,
                "# TYPE klamm_request_duration_seconds histogram",
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="0.0005"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="0.002"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="0.01"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="0.05"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="0.25"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="1"} 0"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="5"} 1"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="30"} 1"#,
                r#"klamm_request_duration_seconds_bucket{api="Fetch",le="+Inf"} 1"#,
                r#"klamm_request_duration_seconds_sum{api="Fetch"} 1.5"#,
                r#"klamm_request_duration_seconds_count{api="Fetch"} 1"#,
            ]
        );
    }
}
