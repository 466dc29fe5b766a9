//! One follower, as its leader sees it.

use std::time::Duration;

use crate::types::{BrokerId, ErrorCode, Offset};

use super::NO_BROKER_EPOCH;

/// A fetch of a follower, and the leader's log at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    pub broker: BrokerId,
    /// The registration epoch that the fetch names; [`NO_BROKER_EPOCH`] in old versions.
    pub broker_epoch: i64,
    pub fetch_offset: Offset,
    /// Where the follower's log starts.
    pub log_start_offset: Offset,
    pub leader_log_end_offset: Offset,
    pub now: Duration,
}

/// What is known of a follower, for whoever picks a replica to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerState {
    pub broker: BrokerId,
    pub log_start_offset: Offset,
    pub log_end_offset: Offset,
    pub last_caught_up: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Follower {
    pub broker: BrokerId,
    /// Of the incarnation that last fetched in this leader epoch.
    pub broker_epoch: Option<i64>,
    pub log_start_offset: Offset,
    /// -1 before its first fetch.
    pub log_end_offset: Offset,
    pub told_high_watermark: Offset,
    /// When it last had everything that the leader had.
    last_caught_up: Option<Duration>,
    last_fetch: Option<LastFetch>,
}

#[derive(Debug, Clone, Copy)]
struct LastFetch {
    at: Duration,
    leader_log_end_offset: Offset,
}

impl Follower {
    pub fn new(broker: BrokerId, last_caught_up: Option<Duration>) -> Follower {
        Follower {
            broker,
            broker_epoch: None,
            log_start_offset: Offset::NONE,
            log_end_offset: Offset::NONE,
            told_high_watermark: Offset::NONE,
            last_caught_up,
            last_fetch: None,
        }
    }

    /// A fetch that asks for the leader's log end has everything now. One that asks for what was
    /// the leader's log end at its fetch before had everything then: so a follower that is never
    /// quite at the end of a log that grows all the time counts as caught up.
    pub fn on_fetch(
        &mut self,
        fetched: &Fetched,
        registered: Option<i64>,
    ) -> Result<(), ErrorCode> {
        let epoch = fetched.broker_epoch;
        let newest = registered.max(self.broker_epoch);
        if epoch != NO_BROKER_EPOCH && newest.is_some_and(|newest| newest > epoch) {
            // A fetch of an earlier incarnation, late on its way.
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let caught_up = if fetched.fetch_offset >= fetched.leader_log_end_offset {
            Some(fetched.now)
        } else {
            let last = self.last_fetch;
            last.filter(|last| fetched.fetch_offset >= last.leader_log_end_offset)
                .map(|last| last.at)
        };
        self.last_caught_up = self.last_caught_up.max(caught_up);
        self.broker_epoch = Some(epoch);
        self.log_start_offset = fetched.log_start_offset;
        self.log_end_offset = fetched.fetch_offset;
        self.last_fetch = Some(LastFetch {
            at: fetched.now,
            leader_log_end_offset: fetched.leader_log_end_offset,
        });
        Ok(())
    }

    pub fn is_caught_up(&self, log_end_offset: Offset, now: Duration, lag_max: Duration) -> bool {
        self.log_end_offset == log_end_offset
            || self
                .last_caught_up
                .is_some_and(|at| now.saturating_sub(at) <= lag_max)
    }

    /// Whether the broker that is registered is the one that has fetched.
    pub fn is_incarnation(&self, registered: Option<i64>) -> bool {
        match (self.broker_epoch, registered) {
            (Some(fetched), Some(registered)) => {
                fetched == NO_BROKER_EPOCH || fetched == registered
            }
            _ => false,
        }
    }

    pub fn state(&self) -> FollowerState {
        FollowerState {
            broker: self.broker,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            last_caught_up: self.last_caught_up.unwrap_or_default(),
        }
    }
}
