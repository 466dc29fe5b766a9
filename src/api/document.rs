//! docs/protocol.md, written from the table of APIs.

use std::fmt::Write;

use super::{APIS, Order};
use crate::wire;

const HEAD: &str = "# The APIs that Klamm serves

Written from the table in `src/api/mod.rs` by `KLAMM_WRITE_DOCS=1 cargo test --test documents`.

\"Kafka 4.4\" is what Apache Kafka 4.4 lists on a broker listener; a dash means that Klamm does not
list the API, and a request for it closes the connection, as Kafka does with what it does not know.
Requests of a pipelined API may overlap with later ones of their connection; replies leave in
request order either way.

| key | API | Klamm | Kafka 4.4 | pipelined |
|---:|---|---|---|---|
";

/// The whole document.
pub fn protocol_markdown() -> String {
    let mut text = HEAD.to_owned();
    let listed = wire::apis()
        .iter()
        .filter(|api| api.broker && !api.versions.is_empty());
    for layout in listed {
        let row = APIS.iter().find(|row| row.key == layout.key);
        let served = row.map_or("-".to_owned(), |row| format!("{}-{}", row.min, row.max));
        let pipelined = if row.is_some_and(|row| row.order == Order::Pipelined) {
            "yes"
        } else {
            ""
        };
        let (first, last) = (*layout.versions.start(), layout.stable_max);
        let (key, name) = (layout.key, layout.name);
        writeln!(
            text,
            "| {key} | {name} | {served} | {first}-{last} | {pipelined} |"
        )
        .expect("a string takes everything");
    }
    text.push_str(
        "\nProduce is listed from 0 in ApiVersions, as Kafka does for old clients that look for it, \
         and refused below 3.\n",
    );
    text
}
