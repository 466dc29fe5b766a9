//! Where each leader epoch starts, and the file `leader-epoch-checkpoint`.
//!
//! ```text
//! 0                     version
//! 2                     number of lines that follow
//! 0 0                   epoch, its first offset
//! 3 120
//! ```
//!
//! 1. Epochs ascend strictly, start offsets do not descend.
//! 2. The file is written before the recovery point passes an epoch's first batch. What is missing
//!    after a crash is therefore in batches that recovery reads again.
//! 3. Entries at or after the log end offset are cut when the log is opened: a crash in a
//!    truncation leaves them. That of an empty log's end stays: it says in which epoch the log was
//!    begun, which tells a log that was begun anew from the older one that was given up.

use std::fmt::Write;

use crate::types::{LeaderEpoch, Offset};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    epoch: LeaderEpoch,
    start_offset: Offset,
}

/// The epochs of one log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Epochs {
    entries: Vec<Entry>,
    /// The file does not say this yet.
    pub is_dirty: bool,
}

impl Epochs {
    /// `None`: damaged.
    pub fn parse(text: &[u8]) -> Option<Epochs> {
        let mut epochs = Epochs::default();
        if text.is_empty() {
            return Some(epochs);
        }
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()?.trim() != "0" {
            return None;
        }
        let count: usize = lines.next()?.trim().parse().ok()?;
        for line in lines.filter(|l| !l.trim().is_empty()) {
            let (epoch, start_offset) = line.trim().split_once(' ')?;
            epochs.assign(
                LeaderEpoch(epoch.parse().ok()?),
                Offset(start_offset.parse().ok()?),
            );
        }
        epochs.is_dirty = false;
        (epochs.entries.len() == count).then_some(epochs)
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for entry in &self.entries {
            writeln!(text, "{} {}", entry.epoch, entry.start_offset)
                .expect("a string takes everything");
        }
        text
    }

    /// Where the oldest one begins.
    pub fn start(&self) -> Option<Offset> {
        self.entries.first().map(|e| e.start_offset)
    }

    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|e| e.epoch)
    }

    /// Notes that `epoch` starts at `start_offset`, unless it is known. Entries that contradict it
    /// go: they are of a log that was since cut off.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) {
        if epoch < LeaderEpoch(0) || start_offset < Offset::ZERO {
            return;
        }
        if let Some(last) = self.entries.last()
            && epoch == last.epoch
            && start_offset >= last.start_offset
        {
            return;
        }
        self.entries
            .retain(|e| e.epoch < epoch && e.start_offset < start_offset);
        self.entries.push(Entry {
            epoch,
            start_offset,
        });
        self.is_dirty = true;
    }

    /// The newest epoch that is not above `epoch`, and the offset where it ends; `None` if `epoch`
    /// is newer than all or [`LeaderEpoch::NONE`] (Kafka answers -1 and -1). Kafka takes what is
    /// more negative for an epoch older than all.
    pub fn end_offset_for(
        &self,
        epoch: LeaderEpoch,
        log_end_offset: Offset,
    ) -> Option<(LeaderEpoch, Offset)> {
        if epoch == LeaderEpoch::NONE {
            return None;
        }
        if self.latest() == Some(epoch) {
            return Some((epoch, log_end_offset));
        }
        let above = self.entries.partition_point(|e| e.epoch <= epoch);
        let end_offset = self.entries.get(above)?.start_offset;
        // Older than the oldest: all that is known is that it ended before that one began.
        let found = above
            .checked_sub(1)
            .map_or(epoch, |i| self.entries[i].epoch);
        Some((found, end_offset))
    }

    /// The epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let above = self.entries.partition_point(|e| e.start_offset <= offset);
        above.checked_sub(1).map(|i| self.entries[i].epoch)
    }

    /// The log ends at `offset` now.
    pub fn truncate_from_end(&mut self, offset: Offset) {
        let keep = self.entries.partition_point(|e| e.start_offset < offset);
        if keep < self.entries.len() {
            self.entries.truncate(keep);
            self.is_dirty = true;
        }
    }

    /// The log starts at `offset` now.
    pub fn truncate_from_start(&mut self, offset: Offset) {
        let above = self.entries.partition_point(|e| e.start_offset <= offset);
        let Some(first) = above.checked_sub(1) else {
            return;
        };
        if first > 0 || self.entries[first].start_offset < offset {
            self.entries.drain(..first);
            self.entries[0].start_offset = offset;
            self.is_dirty = true;
        }
    }

    pub fn clear(&mut self) {
        self.is_dirty |= !self.entries.is_empty();
        self.entries = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        let mut epochs = Epochs::default();
        for &(epoch, start_offset) in entries {
            epochs.assign(LeaderEpoch(epoch), Offset(start_offset));
        }
        epochs
    }

    fn end(epochs: &Epochs, epoch: i32) -> Option<(i32, i64)> {
        epochs
            .end_offset_for(LeaderEpoch(epoch), Offset(100))
            .map(|(e, o)| (e.0, o.0))
    }

    #[test]
    fn ends_of_epochs() {
        let epochs = epochs(&[(2, 10), (4, 30), (7, 60)]);
        let cases = [
            (-1, None),
            (-2, Some((-2, 10))),
            (0, Some((0, 10))),
            (2, Some((2, 30))),
            (3, Some((2, 30))),
            (5, Some((4, 60))),
            (7, Some((7, 100))),
            (8, None),
        ];
        for (epoch, answer) in cases {
            assert_eq!(end(&epochs, epoch), answer, "{epoch}");
        }
        assert_eq!(end(&Epochs::default(), 0), None);
        assert_eq!(epochs.epoch_at(Offset(9)), None);
        assert_eq!(epochs.epoch_at(Offset(30)), Some(LeaderEpoch(4)));
    }

    #[test]
    fn an_epoch_that_contradicts_others_replaces_them() {
        assert_eq!(
            epochs(&[(1, 0), (3, 10), (5, 20), (4, 15)]),
            epochs(&[(1, 0), (3, 10), (4, 15)])
        );
        assert_eq!(epochs(&[(1, 5), (2, 5)]), epochs(&[(2, 5)]));
        assert_eq!(epochs(&[(1, 5), (1, 8)]), epochs(&[(1, 5)]));
    }

    #[test]
    fn both_ends_are_cut() {
        let all = epochs(&[(1, 0), (2, 10), (3, 20)]);
        let cut = |f: fn(&mut Epochs, Offset), offset| {
            let mut cut = all.clone();
            f(&mut cut, Offset(offset));
            cut.is_dirty = true;
            cut
        };
        assert_eq!(
            cut(Epochs::truncate_from_end, 20),
            epochs(&[(1, 0), (2, 10)])
        );
        assert_eq!(cut(Epochs::truncate_from_end, 21), all);
        assert_eq!(
            cut(Epochs::truncate_from_start, 15),
            epochs(&[(2, 15), (3, 20)])
        );
        assert_eq!(cut(Epochs::truncate_from_start, 20), epochs(&[(3, 20)]));
        assert_eq!(cut(Epochs::truncate_from_start, 0), all);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut all = epochs(&[(1, 0), (2, 10)]);
        assert_eq!(all.to_text(), "0\n2\n1 0\n2 10\n");
        all.is_dirty = false;
        assert_eq!(Epochs::parse(all.to_text().as_bytes()), Some(all));
        assert_eq!(Epochs::parse(b""), Some(Epochs::default()));
        for damaged in ["1\n0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\n2\n2 0\n1 5\n"] {
            assert_eq!(Epochs::parse(damaged.as_bytes()), None, "{damaged:?}");
        }
    }
}
