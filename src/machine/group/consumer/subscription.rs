//! What the members of a consumer group subscribe to: names, regular expressions and the topics
//! that these match, and the hash that tells whether those topics changed.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};

use super::*;
use crate::machine::group::Topics;

/// Bounds the memory of a compiled expression: it comes from a client.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Compiles an expression that has to match a whole name. The syntax is RE2's, as in Kafka.
pub(super) fn compile(pattern: &str) -> Result<Regex, Refused> {
    let invalid = |reason: &str| {
        refused(
            ErrorCode::InvalidRegularExpression,
            format!(
                "SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
            ),
        )
    };
    let pattern = match re2::translate(pattern) {
        Ok(translated) => translated,
        Err(reason) => return invalid(reason),
    };
    let build = |pattern: &str| {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(REGEX_BYTES_MAX).build()
    };
    let whole = build(&pattern).and_then(|_| build(&format!(r"\A(?:{pattern})\z")));
    whole.or_else(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        invalid(reason.trim_start_matches("error: ").trim_end_matches('.'))
    })
}

impl ConsumerGroup {
    /// The names that a member subscribes to, one way or the other.
    pub(super) fn names_of<'a>(&'a self, metadata: &'a MemberMetadataValue) -> BTreeSet<&'a str> {
        let regex = metadata.subscribed_topic_regex.as_deref();
        self.names(&metadata.subscribed_topic_names, regex)
    }

    pub(super) fn names<'a>(
        &'a self,
        named: &'a [String],
        regex: Option<&str>,
    ) -> BTreeSet<&'a str> {
        let matched = regex.and_then(|r| self.regexes.get(r));
        let matched = matched.into_iter().flat_map(|r| &r.topics);
        named.iter().chain(matched).map(String::as_str).collect()
    }

    /// All names that members subscribe to.
    pub fn subscribed_names(&self) -> BTreeSet<&str> {
        let all = self.tally.subscriptions();
        all.flat_map(|s| self.names(&s.names, s.regex.as_deref()))
            .collect()
    }

    /// The ids of the topics among `names` that exist, with their partitions.
    pub(super) fn existing(names: &BTreeSet<&str>, topics: &dyn Topics) -> BTreeMap<TopicId, i32> {
        let found = names.iter().filter_map(|name| topics.by_name(name));
        found.map(|topic| (topic.id, topic.partitions)).collect()
    }

    /// Changes whenever a topic that is subscribed to is made, deleted, or gets partitions; 0 if
    /// there is none. Only ever compared with itself, so the function is ours (FNV-1a).
    pub(super) fn metadata_hash(&self, topics: &dyn Topics) -> i64 {
        let existing = Self::existing(&self.subscribed_names(), topics);
        if existing.is_empty() {
            return 0;
        }
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for (id, partitions) in existing {
            for byte in id.0.as_bytes().iter().chain(&partitions.to_be_bytes()) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        match hash as i64 {
            0 => 1,
            hash => hash,
        }
    }

    /// Topics were made, deleted, or got partitions: looked at with the next heartbeat.
    pub fn on_topics_changed(&mut self, changed: &[crate::types::TopicName]) {
        if self.needs_refresh || !self.regexes.is_empty() {
            self.needs_refresh = true;
            return;
        }
        let names = self.subscribed_names();
        self.needs_refresh = changed.iter().any(|topic| names.contains(&**topic));
    }

    /// Looks up which topics an expression matches.
    pub(super) fn resolve(&mut self, pattern: &str, context: &mut Context<'_>) {
        let Ok(regex) = compile(pattern) else {
            return;
        };
        let mut matched = Vec::new();
        context.topics.for_each_name(&mut |name| {
            if regex.is_match(name) {
                matched.push(name.to_string());
            }
        });
        matched.sort();
        let old = self.regexes.get(pattern);
        if old.is_some_and(|old| old.topics == matched) {
            return;
        }
        let record = Record::ConsumerGroupRegularExpression {
            group: self.group_id.clone(),
            regex: pattern.to_owned(),
            value: Some(RegularExpressionValue {
                topics: matched,
                version: context.topics.version(),
                timestamp: context.now.wall,
            }),
        };
        self.emit(record, context);
    }

    /// Takes back the expressions that nobody subscribes by any more.
    pub(super) fn drop_unused_regexes(&mut self, context: &mut Context<'_>) {
        let all = self.regexes.keys();
        let unused = all.filter(|regex| !self.tally.uses_regex(regex));
        for regex in unused.cloned().collect::<Vec<_>>() {
            let record = Record::ConsumerGroupRegularExpression {
                group: self.group_id.clone(),
                regex,
                value: None,
            };
            self.emit(record, context);
        }
    }

    /// Starts a new epoch if `changed`, or if the topics are not what they were.
    pub(super) fn bump_epoch(&mut self, changed: bool, context: &mut Context<'_>) {
        if !changed && !self.needs_refresh {
            return;
        }
        if self.needs_refresh {
            let patterns: Vec<String> = self.regexes.keys().cloned().collect();
            for pattern in patterns {
                self.resolve(&pattern, context);
            }
            self.needs_refresh = false;
        }
        let metadata_hash = self.metadata_hash(context.topics);
        if !changed && metadata_hash == self.epoch.metadata_hash {
            return;
        }
        let record = Record::ConsumerGroupMetadata {
            group: self.group_id.clone(),
            value: Some(GroupEpoch {
                epoch: self.epoch.epoch + 1,
                metadata_hash,
            }),
        };
        self.emit(record, context);
    }
}
