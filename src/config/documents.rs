//! `docs/configuration.md`, written from the tables.

use std::fmt::Write;

use super::table::Table;
use super::{
    AREAS, ClientMetricsConfig, ClientQuotaConfig, Conversion, Effect, GroupConfig, IpQuotaConfig,
    ONE_REPLICA, Row, SINGLE_NODE, ScramConfig, TopicConfig,
};

const HEAD: &str = "\
<!-- Written by `KLAMM_WRITE_DOCS=1 cargo test --test documents` from src/config/. -->

# Configuration

Names, types, defaults and limits are those of Apache Kafka 4.4. A value is taken from the highest
of these places that has it:

1. what the cluster holds for this broker
   (`kafka-configs --entity-type brokers --entity-name ID`);
2. what the cluster holds for all brokers (`--entity-default`);
3. `--override name=value`;
4. the environment: `KAFKA_LOG_RETENTION_MS` is `log.retention.ms` (a dash is `___`, an underscore
   `__`);
5. `server.properties`;
6. where there is no such file, the list under [Without a file](#without-a-file);
7. the default.

An unknown name is ignored with a warning. A wrong value stops the start, with the place where it
was written.

**Effect** says what Klamm does with a value: *applied*; *no effect* (it is accepted, and said in a
warning where it is not the default); or *refused* (ignoring it would be unsafe, so that any other
value than the default stops the start).

**Scope** says where a running cluster takes a new value: *read-only* at start only, *per-broker*
for one broker, *cluster-wide* for one or for all.
";

/// The whole document.
pub fn configuration_markdown() -> String {
    let mut text = HEAD.to_owned();
    without_a_file(&mut text);
    text.push_str("\n## Broker\n");
    for (area, rows) in AREAS {
        section(&mut text, "###", &capitalized(area), rows, true);
    }
    let inherited = "A topic without a value of its own has the broker's, or else the default. Of several broker \
         names the first that is set counts.\n";
    section(&mut text, "##", "Topic", TopicConfig::ROWS, false);
    text.push_str(&format!("\n{inherited}"));
    broker_names(&mut text, TopicConfig::ROWS);
    section(&mut text, "##", "Group", GroupConfig::ROWS, false);
    text.push_str("\nA group without a value of its own has the broker's, or else the default.\n");
    broker_names(&mut text, GroupConfig::ROWS);
    section(
        &mut text,
        "##",
        "Client metrics",
        ClientMetricsConfig::ROWS,
        false,
    );
    section(
        &mut text,
        "##",
        "Quotas of users and clients",
        ClientQuotaConfig::ROWS,
        false,
    );
    section(
        &mut text,
        "##",
        "Quotas of addresses",
        IpQuotaConfig::ROWS,
        false,
    );
    section(
        &mut text,
        "##",
        "SCRAM credentials of users",
        ScramConfig::ROWS,
        false,
    );
    text
}

fn without_a_file(text: &mut String) {
    text.push_str(
        "\n## Without a file\n\nA node that is given no `server.properties` starts with\n\n\
         ```properties\n",
    );
    for (name, value) in SINGLE_NODE {
        let _ = writeln!(text, "{name}={value}");
    }
    text.push_str(
        "```\n\nand, unless the environment or an `--override` names a quorum, it is the only voter \
         of its own\nand has one replica of everything:\n\n```properties\n",
    );
    for (name, value) in ONE_REPLICA {
        let _ = writeln!(text, "{name}={value}");
    }
    text.push_str("```\n");
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn section(text: &mut String, level: &str, title: &str, rows: &[Row], of_broker: bool) {
    let _ = write!(
        text,
        "\n{level} {title}\n\n| Name | Type | Default | Valid |"
    );
    text.push_str(if of_broker { " Scope |" } else { "" });
    text.push_str(" Effect | What it does |\n|---|---|---|---|---|---|");
    text.push_str(if of_broker { "---|\n" } else { "\n" });
    for row in rows {
        let name = row.name;
        let kind = row.config_type.name().to_lowercase();
        let (default, valid) = (default_cell(row), escaped(&row.valid.to_string()));
        let _ = write!(text, "| `{name}` | {kind} | {default} | {valid} |");
        if of_broker {
            let _ = write!(text, " {} |", row.scope.name());
        }
        let _ = writeln!(
            text,
            " {} | {} |",
            effect_cell(row),
            escaped(row.documentation)
        );
    }
}

fn default_cell(row: &Row) -> String {
    match row.default {
        super::DefaultValue::Required => "must be set".to_owned(),
        super::DefaultValue::Null => "null".to_owned(),
        super::DefaultValue::Text("") => "empty".to_owned(),
        super::DefaultValue::Text(default) => format!("`{default}`"),
    }
}

fn effect_cell(row: &Row) -> String {
    match row.effect {
        Effect::Applied => "applied".to_owned(),
        Effect::NoEffect(reason) => format!("no effect: {}", escaped(reason)),
        Effect::Refused(reason) => format!("refused: {}", escaped(reason)),
    }
}

/// A bar would end the cell, and stars would make it slanted.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}

fn broker_names(text: &mut String, rows: &[Row]) {
    text.push_str("\n| Name | The broker's |\n|---|---|\n");
    for row in rows.iter().filter(|row| !row.fallbacks.is_empty()) {
        let names: Vec<String> = row
            .fallbacks
            .iter()
            .map(|fallback| match fallback.conversion {
                Conversion::Same => format!("`{}`", fallback.name),
                Conversion::Minutes => format!("`{}` (minutes)", fallback.name),
                Conversion::Hours => format!("`{}` (hours)", fallback.name),
                Conversion::FirstItem => format!("the first of `{}`", fallback.name),
            })
            .collect();
        let _ = writeln!(text, "| `{}` | {} |", row.name, names.join(", "));
    }
}
