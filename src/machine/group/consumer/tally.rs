//! What the members of a consumer group ask for, counted: a group of thousands is not looked
//! through with every member that joins.

use std::collections::BTreeMap;

use crate::machine::group::records::MemberMetadataValue;

/// Topics by name, and by a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subscription {
    pub names: Vec<String>,
    pub regex: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    subscriptions: BTreeMap<Subscription, usize>,
    assignors: BTreeMap<String, usize>,
}

impl Tally {
    pub fn add(&mut self, member: &MemberMetadataValue) {
        *self.subscriptions.entry(subscription(member)).or_default() += 1;
        if let Some(assignor) = &member.server_assignor {
            *self.assignors.entry(assignor.clone()).or_default() += 1;
        }
    }

    /// Takes back what was added.
    pub fn remove(&mut self, member: &MemberMetadataValue) {
        take_one(&mut self.subscriptions, &subscription(member));
        if let Some(assignor) = &member.server_assignor {
            take_one(&mut self.assignors, assignor);
        }
    }

    /// Each once, however many members have it.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.keys()
    }

    pub fn uses_regex(&self, regex: &str) -> bool {
        let mut used = self.subscriptions.keys();
        used.any(|subscription| subscription.regex.as_deref() == Some(regex))
    }

    /// The assignor that most members name; of equals the last by name.
    pub fn preferred_assignor(&self) -> Option<&str> {
        let most = self.assignors.iter().max_by_key(|(_, count)| **count);
        most.map(|(name, _)| name.as_str())
    }
}

fn subscription(member: &MemberMetadataValue) -> Subscription {
    Subscription {
        names: member.subscribed_topic_names.clone(),
        regex: member.subscribed_topic_regex.clone(),
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    let count = counts.get_mut(key);
    let count = count.expect("only what was added is taken back");
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}
