//! The dialects in which images of Kafka are configured: which environment variables mean which
//! configurations, and what each family starts with.
//!
//! ```text
//! variables -> names of the family -> values repaired -> old names -> defaults of the family
//!           -> what a node still needs -> refused or effective
//! ```
//!
//! 1. What a family does differently is a row of [`FAMILIES`]; the steps are the same for all.
//! 2. A name without effect stops nothing and is said once.
//! 3. What would need TLS, SASL or ACLs is refused, never served open.
//! 4. Nothing here reads a file, asks a name server or runs a command: [`Place`] is asked.

mod complete;
mod detect;
mod families;
mod family;
mod listeners;
mod names;
mod old_names;
mod refuse;
mod topics;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Origin, Property};

pub use detect::detect;
pub use families::FAMILIES;
pub use family::{Dialect, Family, FileWins};
pub use names::environment_properties;
pub use refuse::Refusal;
pub use topics::{TopicOrder, parse_topics};

/// How a file that was made of the environment begins.
pub const WRITTEN: &str = "# Written from the environment";

/// What the dialect may ask about where it runs.
pub struct Place<'a> {
    pub host_name: &'a str,
    /// The pairs of the properties file that was mounted where the family looks for one.
    pub file: Option<Vec<Property>>,
    /// The text of a file, for names that end with `_FILE`.
    pub read: &'a dyn Fn(&str) -> Option<String>,
    /// What a shell command prints, for names that end with `_COMMAND`.
    pub run: &'a dyn Fn(&str) -> Option<String>,
}

/// What an environment comes to.
#[derive(Debug, Default)]
pub struct Effective {
    pub properties: BTreeMap<String, Property>,
    /// `None`: one is made up at the first start.
    pub cluster_id: Option<Property>,
    pub topics: Vec<TopicOrder>,
    /// Lines for the log.
    pub notes: Vec<String>,
    /// Variables that were accepted and have no effect.
    pub without_effect: Vec<String>,
}

impl Effective {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(|p| p.value.as_str())
    }

    fn set(&mut self, name: &str, value: impl Into<String>, origin: Origin) {
        let property = Property {
            name: name.to_owned(),
            value: value.into(),
            origin,
        };
        self.properties.insert(name.to_owned(), property);
    }

    /// Sets what nobody has set.
    fn fill(&mut self, name: &str, value: impl Into<String>, origin: Origin) {
        if !self.properties.contains_key(name) {
            self.set(name, value, origin);
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The properties as a file, each below the place it came from.
    pub fn file_text(&self, family: &Family) -> String {
        let mut text = format!("{WRITTEN} ({}).\n", family.name);
        for property in self.properties.values() {
            // Nobody asked for it, and the log would say that it has no effect.
            let is_made_up = matches!(property.origin, Origin::BuiltIn | Origin::Image(_));
            if is_made_up && has_no_effect(&property.name) {
                continue;
            }
            let (name, value) = (
                escaped(&property.name, true),
                escaped(&property.value, false),
            );
            text.push_str(&format!("# {}\n{name}={value}\n", property.origin));
        }
        text
    }
}

/// The effective configuration that `variables` mean in the words of `family`.
pub fn resolve(
    family: &'static Family,
    variables: &[(String, String)],
    place: &Place<'_>,
) -> Result<Effective, Refusal> {
    let mut made = Effective::default();
    let file = place.file.clone();
    if family.file_wins == FileWins::OverEverything
        && let Some(file) = file
    {
        made.note("a properties file is mounted: the environment is not looked at");
        file.into_iter().for_each(|property| {
            made.properties.insert(property.name.clone(), property);
        });
        refuse::check(&made)?;
        return Ok(made);
    }
    let has_file = file.is_some();
    for property in file.into_iter().flatten() {
        made.properties.insert(property.name.clone(), property);
    }
    let mut read = names::read(family, variables, place);
    let is_of_zookeeper = old_names::is_of_zookeeper(&read);
    old_names::take_out(&mut read);
    let is_told_nothing = read.properties.is_empty() && !has_file;
    read.properties.iter().for_each(|property| {
        made.properties
            .insert(property.name.clone(), property.clone());
    });
    made.without_effect = read.without_effect;
    made.notes.extend(read.notes);
    made.cluster_id = names::cluster_id(family, variables, place);
    made.topics = topics::ordered(family, variables, &mut made.notes);
    complete::complete(&mut made, family, &read.own, is_told_nothing, place);
    if is_of_zookeeper {
        // In its days a broker's address could be altered while it ran, and modules do it.
        let origin = Origin::From("zookeeper.connect");
        made.fill("klamm.advertised.dynamic", "true", origin);
    }
    refuse::check(&made)?;
    Ok(made)
}

fn has_no_effect(name: &str) -> bool {
    let row = super::broker::broker_row(name);
    row.is_some_and(|row| matches!(row.effect, super::Effect::NoEffect(_)))
}

/// As the properties format wants it.
fn escaped(text: &str, is_name: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' ' if at == 0 || is_name => out.push_str("\\ "),
            '=' | ':' | '#' | '!' if is_name => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
