//! How far a log is compacted, whether it is worth it, and which segments become one, PURE.
//!
//! ```text
//!  log start     clean point           first uncleanable       active segment    log end
//!      |  clean       |     cleanable          |   too new, or unstable   |         |
//!      +--------------+------------------------+--------------------------+---------+
//! ```
//!
//! 1. What is cleanable ends at a segment's start: before the last stable offset, before the first
//!    segment younger than `min.compaction.lag.ms`, at the latest before the active segment.
//! 2. A log is compacted when the cleanable share is above `min.cleanable.dirty.ratio`, or when its
//!    oldest cleanable record has waited for `max.compaction.lag.ms`.

use crate::types::{Offset, TimestampMs};

use super::config::LogConfig;

/// What is to be known of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentSize {
    pub base_offset: Offset,
    pub log_bytes: u32,
    pub offset_index_bytes: u32,
    pub time_index_bytes: u32,
}

/// What can be compacted of one log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cleanable {
    pub first_dirty: Offset,
    /// The start of a segment.
    pub first_uncleanable: Offset,
    /// Below `first_dirty`.
    pub clean_bytes: u64,
    pub cleanable_bytes: u64,
    /// It has waited too long, whatever the ratio.
    pub is_overdue: bool,
}

impl Cleanable {
    pub fn ratio(&self) -> f64 {
        let total_bytes = self.clean_bytes + self.cleanable_bytes;
        if total_bytes == 0 {
            return 0.0;
        }
        self.cleanable_bytes as f64 / total_bytes as f64
    }

    pub fn is_due(&self, config: &LogConfig) -> bool {
        self.cleanable_bytes > 0
            && (self.is_overdue || self.ratio() > config.min_cleanable_dirty_ratio)
    }
}

/// Where the dirty part begins. A clean point outside the log is one of an older log.
pub(super) fn first_dirty(clean_point: Offset, log_start: Offset, log_end: Offset) -> Offset {
    if clean_point < log_start || clean_point > log_end {
        return log_start;
    }
    clean_point
}

/// The place among `segments` (the active one is the last) of the first that is not compacted.
/// `max_timestamp` is only asked where `min.compaction.lag.ms` is set.
pub(super) fn first_uncleanable<E>(
    segments: &[SegmentSize],
    first_dirty: Offset,
    last_stable_offset: Offset,
    min_cleaned: Option<TimestampMs>,
    mut max_timestamp: impl FnMut(usize) -> Result<TimestampMs, E>,
) -> Result<usize, E> {
    let active = segments.len() - 1;
    let holds = |offset: Offset| {
        let above = segments.partition_point(|s| s.base_offset <= offset);
        above.saturating_sub(1)
    };
    let mut first = active.min(holds(last_stable_offset));
    if let Some(min_cleaned) = min_cleaned {
        for at in holds(first_dirty)..first {
            if max_timestamp(at)? > min_cleaned {
                first = at;
                break;
            }
        }
    }
    Ok(first)
}

/// Neighbours that together are no larger than one segment may be become one.
pub(super) fn group_by_size(
    segments: &[SegmentSize],
    end: Offset,
    config: &LogConfig,
) -> Vec<usize> {
    let mut counts = Vec::new();
    let mut at = 0;
    while at < segments.len() {
        let first = &segments[at];
        let mut bytes = [0_u64; 3];
        let mut count = 0;
        for (i, segment) in segments[at..].iter().enumerate() {
            let sum = [
                bytes[0] + u64::from(segment.log_bytes),
                bytes[1] + u64::from(segment.offset_index_bytes),
                bytes[2] + u64::from(segment.time_index_bytes),
            ];
            let index_max = u64::from(config.segment_index_bytes);
            let is_small = sum[0] <= u64::from(config.segment_bytes)
                && sum[1] <= index_max
                && sum[2] <= index_max;
            let next = segments.get(at + i + 1).map_or(end, |s| s.base_offset);
            let is_near = next.0 - first.base_offset.0 <= i64::from(i32::MAX);
            if i > 0 && !(is_small && is_near) {
                break;
            }
            bytes = sum;
            count += 1;
        }
        counts.push(count);
        at += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(parts: &[(i64, u32)]) -> Vec<SegmentSize> {
        let size = |&(base_offset, log_bytes): &(i64, u32)| SegmentSize {
            base_offset: Offset(base_offset),
            log_bytes,
            offset_index_bytes: 8,
            time_index_bytes: 12,
        };
        parts.iter().map(size).collect()
    }

    #[test]
    fn what_is_new_or_unstable_is_left() {
        let log = segments(&[(0, 10), (10, 10), (20, 10), (30, 10)]);
        let first = |stable: i64, dirty: i64, min: Option<i64>| {
            let ages = [1, 5, 2, 9].map(TimestampMs);
            let at = |at: usize| Ok::<_, ()>(ages[at]);
            first_uncleanable(
                &log,
                Offset(dirty),
                Offset(stable),
                min.map(TimestampMs),
                at,
            )
        };
        assert_eq!(first(40, 0, None), Ok(3));
        assert_eq!(first(30, 0, None), Ok(3));
        assert_eq!(first(29, 0, None), Ok(2));
        assert_eq!(first(5, 0, None), Ok(0));
        assert_eq!(first(40, 0, Some(4)), Ok(1));
        // What was clean before is not looked at again.
        assert_eq!(first(40, 20, Some(4)), Ok(3));
        assert_eq!(first(40, 0, Some(0)), Ok(0));
    }

    #[test]
    fn a_strange_clean_point_is_not_used() {
        let at = |point: i64| first_dirty(Offset(point), Offset(5), Offset(10)).0;
        assert_eq!(
            [at(-1), at(4), at(5), at(7), at(10), at(11)],
            [5, 5, 5, 7, 10, 5]
        );
    }

    #[test]
    fn a_log_is_due_by_its_share_or_its_age() {
        let config = LogConfig::default();
        let mut cleanable = Cleanable {
            first_dirty: Offset(0),
            first_uncleanable: Offset(10),
            clean_bytes: 50,
            cleanable_bytes: 50,
            is_overdue: false,
        };
        assert!(!cleanable.is_due(&config));
        cleanable.cleanable_bytes = 51;
        assert!(cleanable.is_due(&config));
        cleanable.cleanable_bytes = 1;
        cleanable.is_overdue = true;
        assert!(cleanable.is_due(&config));
        cleanable.cleanable_bytes = 0;
        assert!(!cleanable.is_due(&config));
    }

    #[test]
    fn neighbours_are_joined_up_to_the_size_of_a_segment() {
        let config = LogConfig {
            segment_bytes: 100,
            segment_index_bytes: 30,
            ..LogConfig::default()
        };
        let group = |parts: &[(i64, u32)]| {
            group_by_size(
                &segments(parts),
                Offset(parts.last().map_or(0, |p| p.0 + 1)),
                &config,
            )
        };
        assert_eq!(group(&[]), [0; 0]);
        assert_eq!(group(&[(0, 150), (1, 50), (2, 50), (3, 1)]), [1, 2, 1]);
        // Two indexes of 12 bytes fit, not three.
        assert_eq!(group(&[(0, 1), (1, 1), (2, 1), (3, 1)]), [2, 2]);
        let far = i64::from(i32::MAX);
        assert_eq!(group(&[(0, 1), (5, 1), (far + 1, 1)]), [1, 2]);
    }
}
