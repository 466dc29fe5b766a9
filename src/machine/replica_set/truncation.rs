//! Where a follower cuts its log when the leader says that the two part.

use crate::types::{LeaderEpoch, Offset};

/// The follower's log, as far as it counts here.
pub trait EpochEnds {
    fn log_end_offset(&self) -> Offset;

    /// The newest epoch that is not above `epoch`, and where it ends.
    fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)>;
}

/// The offset at which the follower's log is to be cut. `diverging` is the leader's answer: its
/// newest epoch that is not above the follower's last one, and where that ends. An epoch that the
/// follower does not know either says that all of its newer ones are to go; the next fetch then
/// names an older one.
pub fn truncation_offset(own: &impl EpochEnds, diverging: (LeaderEpoch, Offset)) -> Offset {
    let (epoch, leader_end) = diverging;
    let log_end = own.log_end_offset();
    let cut = match own.end_of_epoch(epoch) {
        Some((own_epoch, own_end)) if own_epoch != epoch => own_end,
        Some((_, own_end)) => own_end.min(leader_end),
        None => leader_end,
    };
    cut.min(log_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epochs with the offsets where they start, and the end of the log.
    struct Own(&'static [(i32, i64)], i64);

    impl EpochEnds for Own {
        fn log_end_offset(&self) -> Offset {
            Offset(self.1)
        }

        fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
            let at = self.0.iter().rposition(|(known, _)| *known <= epoch.0)?;
            let end = self.0.get(at + 1).map_or(self.1, |(_, start)| *start);
            Some((LeaderEpoch(self.0[at].0), Offset(end)))
        }
    }

    #[test]
    fn cuts() {
        let own = Own(&[(1, 0), (3, 10), (6, 20)], 30);
        let cut = |epoch, end| truncation_offset(&own, (LeaderEpoch(epoch), Offset(end))).0;
        // The leader's epoch 6 ended earlier, or later, than ours.
        assert_eq!(cut(6, 25), 25);
        assert_eq!(cut(6, 40), 30);
        // It has no 6; its 3 is shorter, or longer.
        assert_eq!(cut(3, 15), 15);
        assert_eq!(cut(3, 28), 20);
        // It has a 5 that we lack: everything after our 3 goes, then we ask again.
        assert_eq!(cut(5, 28), 20);
        assert_eq!(cut(2, 28), 10);
        // Older than all that we know.
        assert_eq!(cut(0, 7), 7);
    }
}
