//! From the JSON of a case to a request of one version.

use std::borrow::Cow;
use std::collections::BTreeSet;

use klamm::wire::{self, Kind, Struct, Value};
use serde_json::Value as Json;

use crate::batch;

/// Fields whose default in Kafka is not zero, false, empty or null. Those of one name agree.
const DEFAULTS: &[(&str, i64)] = &[
    ("acks", -1),
    ("committed_leader_epoch", -1),
    ("current_leader_epoch", -1),
    ("endpoint_type", 1),
    ("last_fetched_epoch", -1),
    ("leader_epoch", -1),
    ("max_bytes", 0x7fff_ffff),
    ("num_partitions", 1),
    ("partition_max_bytes", 1 << 20),
    ("producer_epoch", -1),
    ("producer_id", -1),
    ("rebalance_timeout_ms", -1),
    ("replica_id", -1),
    ("replication_factor", 1),
    ("response_partition_limit", 2000),
    ("retention_time_ms", -1),
    ("session_epoch", -1),
    ("timeout_ms", 10_000),
    ("transaction_timeout_ms", 60_000),
];

/// A body without variables and records.
pub fn plain(api: &str, version: i16, body: &str) -> Value {
    body_of(api, version, body, 0).expect("a body that fits its layout")
}

/// The body for one version: fields that only other versions have are left out, and records are
/// built; a field that no version has is an error.
pub fn body_of(api: &str, version: i16, body: &str, t0_ms: i64) -> Result<Value, String> {
    let mut json: Json = serde_json::from_str(body).map_err(|e| format!("{e} in {body}"))?;
    batch::build_all(&mut json, t0_ms)?;
    let api = wire::api_by_name(api).ok_or("no such API")?;
    let mut names = BTreeSet::new();
    for version in api.versions.clone() {
        add_names(api.request(version).ok_or("no layout")?, &mut names);
    }
    let layout = api
        .request(version)
        .ok_or_else(|| format!("{} has no version {version}", api.name))?;
    project(&Value::from_json(&json), layout, &names)
}

fn add_names(layout: &Struct, names: &mut BTreeSet<&'static str>) {
    let tagged = layout.tagged.as_deref().unwrap_or_default();
    for field in layout.fields.iter().chain(tagged.iter().map(|t| &t.field)) {
        names.insert(field.name);
        if let Some(inner) = struct_in(&field.kind) {
            add_names(inner, names);
        }
    }
}

fn struct_in(kind: &Kind) -> Option<&Struct> {
    match kind {
        Kind::Struct { layout, .. } => Some(layout),
        Kind::Array(_, element) => struct_in(element),
        _ => None,
    }
}

fn project(value: &Value, layout: &Struct, names: &BTreeSet<&str>) -> Result<Value, String> {
    let Value::Struct(given) = value else {
        return Ok(value.clone());
    };
    let tagged = layout.tagged.as_deref().unwrap_or_default();
    let mut fields = Vec::new();
    for (name, value) in given {
        let fixed = layout.fields.iter().chain(tagged.iter().map(|t| &t.field));
        match fixed.into_iter().find(|field| field.name == name) {
            Some(field) => {
                fields.push((name.clone(), project_kind(value, &field.kind, names)?));
            }
            None if name.starts_with("_tag_") => {
                if layout.tagged.is_some() {
                    fields.push((name.clone(), value.clone()));
                }
            }
            None if names.contains(&**name) => {}
            None => return Err(format!("no version has a field {name}")),
        }
    }
    for field in &layout.fields {
        let default = DEFAULTS.iter().find(|(name, _)| *name == field.name);
        if let (None, Some((_, default))) = (value.get(field.name), default) {
            fields.push((Cow::Borrowed(field.name), Value::Integer(*default)));
        }
    }
    Ok(Value::Struct(fields))
}

fn project_kind(value: &Value, kind: &Kind, names: &BTreeSet<&str>) -> Result<Value, String> {
    match (value, kind) {
        (Value::Array(elements), Kind::Array(_, element)) => {
            let elements = elements.iter().map(|e| project_kind(e, element, names));
            Ok(Value::Array(elements.collect::<Result<_, _>>()?))
        }
        (_, Kind::Struct { layout, .. }) => project(value, layout, names),
        _ => Ok(value.clone()),
    }
}
