//! Which broker configurations bound what a group may be set to.

/// A name of the table of groups, and the broker's limits of it.
pub struct GroupRange {
    pub name: &'static str,
    pub min: Option<&'static str>,
    pub max: Option<&'static str>,
}

const fn within(name: &'static str, min: &'static str, max: &'static str) -> GroupRange {
    GroupRange {
        name,
        min: Some(min),
        max: Some(max),
    }
}

pub const GROUP_RANGES: &[GroupRange] = &[
    within(
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    within(
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    within(
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    within(
        "share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    within(
        "share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    within(
        "share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    within(
        "share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    within(
        "share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    within(
        "share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    within(
        "streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    within(
        "streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    within(
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    GroupRange {
        name: "streams.task.offset.interval.ms",
        min: Some("group.streams.min.task.offset.interval.ms"),
        max: None,
    },
    GroupRange {
        name: "streams.num.standby.replicas",
        min: None,
        max: Some("group.streams.max.standby.replicas"),
    },
    GroupRange {
        name: "streams.num.warmup.replicas",
        min: None,
        max: Some("group.streams.max.warmup.replicas"),
    },
];

impl GroupRange {
    /// What is wrong with `value`, if it is outside; `limit` gives the value of a broker's name.
    pub fn outside(&self, value: i32, limit: &dyn Fn(&str) -> i32) -> Option<String> {
        let (min, max) = (self.min.map(limit), self.max.map(limit));
        if min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max) {
            return None;
        }
        Some(match (min, max) {
            (Some(min), Some(max)) => {
                format!(
                    "{} must be in the range {min} to {max} inclusive.",
                    self.name
                )
            }
            (Some(min), None) => format!("{} must be greater than or equal to {min}", self.name),
            (None, max) => {
                let max = max.unwrap_or(i32::MAX);
                format!("{} must be less than or equal to {max}", self.name)
            }
        })
    }
}
