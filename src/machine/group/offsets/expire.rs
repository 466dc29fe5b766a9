//! Expiry of offsets (`offsets.retention.minutes`).
//!
//! | group                                  | an offset ages from               |
//! |----------------------------------------|-----------------------------------|
//! | only holds offsets (no protocol type)  | its commit                        |
//! | empty                                  | when the group became empty       |
//! | stable, of consumers, not subscribed   | its commit                        |
//! | anything else                          | does not age                      |
//!
//! An offset whose commit named its own retention (OffsetCommit v2-v4) goes by that instead. One
//! that a transaction is about to change does not go.

use super::commit::tombstone;
use super::*;
use crate::machine::group::admin::Subscribed;
use crate::machine::group::records::Record;
use crate::types::TimestampMs;

impl Offsets {
    /// Tombstones for what is expired, and whether nothing is left of the group.
    /// `age_from`: see the table; `None` is each offset's own commit.
    pub fn plan_expire(
        &self,
        group: &GroupId,
        age_from: Option<TimestampMs>,
        subscribed: &Subscribed<'_>,
        now: TimestampMs,
        retention_ms: i64,
    ) -> (Vec<Record>, bool) {
        let mut records = Vec::new();
        let mut nothing_left = !self.open_transactions.contains_key(group);
        for (topic, partition, value) in self.of_group(group) {
            let expired = match value.expire_timestamp {
                TimestampMs::NONE => {
                    let from = age_from.unwrap_or(value.commit_timestamp);
                    now.0.saturating_sub(from.0) >= retention_ms
                }
                at => now >= at,
            };
            if expired && !subscribed.contains(topic) && !self.has_pending(group, topic, partition)
            {
                records.push(tombstone(group, topic, partition));
            } else {
                nothing_left = false;
            }
        }
        (records, nothing_left)
    }
}
