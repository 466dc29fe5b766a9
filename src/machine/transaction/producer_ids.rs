//! Producer ids for one broker, taken one by one from the blocks that the controller gives
//! (AllocateProducerIds). A block that a crash leaves half used is never used again.
//!
//! 1. No id is given twice: a block that overlaps an earlier one is refused.
//! 2. The next block is asked for once nine tenths of the present one are gone, so that nobody has
//!    to wait for it.

use crate::types::{ErrorCode, ProducerId};

/// How many ids Kafka's controller gives at a time.
pub const PRODUCER_ID_BLOCK_LEN: i32 = 1000;

/// `len` ids from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerIdBlock {
    pub start: ProducerId,
    pub len: i32,
}

impl ProducerIdBlock {
    /// The block after the last one that was given: the controller's side of AllocateProducerIds.
    /// `None` when 2^63 ids are used up.
    pub fn following(next_producer_id: ProducerId) -> Option<Self> {
        next_producer_id
            .0
            .checked_add(i64::from(PRODUCER_ID_BLOCK_LEN))?;
        Some(ProducerIdBlock {
            start: next_producer_id,
            len: PRODUCER_ID_BLOCK_LEN,
        })
    }

    /// The first id behind this block; `None` for a block that cannot be.
    pub fn end(self) -> Option<ProducerId> {
        if self.start.0 < 0 || self.len <= 0 {
            return None;
        }
        self.start
            .0
            .checked_add(i64::from(self.len))
            .map(ProducerId)
    }
}

/// The block in use and the one after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerIds {
    /// What is left of the block in use: from .. to.
    current: (i64, i64),
    current_len: i64,
    next: Option<ProducerIdBlock>,
    /// Ids below this were given to this broker before.
    used_below: i64,
}

impl ProducerIds {
    pub fn new() -> Self {
        Self::default()
    }

    /// A fresh id; COORDINATOR_LOAD_IN_PROGRESS, which clients retry, until a block arrives.
    pub fn draw(&mut self) -> Result<ProducerId, ErrorCode> {
        if self.current.0 == self.current.1 {
            let block = self
                .next
                .take()
                .ok_or(ErrorCode::CoordinatorLoadInProgress)?;
            self.use_block(block);
        }
        let id = self.current.0;
        self.current.0 += 1;
        Ok(ProducerId(id))
    }

    /// Whether there is no id to draw.
    pub fn is_empty(&self) -> bool {
        self.current.0 == self.current.1 && self.next.is_none()
    }

    /// Whether a block should be asked for now, if none is on its way.
    pub fn wants_block(&self) -> bool {
        let left = self.current.1 - self.current.0;
        self.next.is_none() && left <= self.current_len / 10
    }

    /// Takes a block from the controller. False if it is no block, overlaps what was given before
    /// or is not wanted; its ids are then simply lost.
    pub fn add_block(&mut self, block: ProducerIdBlock) -> bool {
        let Some(end) = block.end() else { return false };
        if block.start.0 < self.used_below || self.next.is_some() {
            return false;
        }
        self.used_below = end.0;
        self.next = Some(block);
        true
    }

    fn use_block(&mut self, block: ProducerIdBlock) {
        self.current_len = i64::from(block.len);
        self.current = (block.start.0, block.start.0 + self.current_len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_drawn_in_order_and_blocks_are_asked_for_early() {
        let mut ids = ProducerIds::new();
        assert!(ids.wants_block());
        assert_eq!(ids.draw(), Err(ErrorCode::CoordinatorLoadInProgress));
        let mut given = ProducerId(0);
        let mut seen = Vec::new();
        for _ in 0..3500 {
            if ids.wants_block() {
                let block = ProducerIdBlock::following(given).unwrap();
                given = block.end().unwrap();
                assert!(ids.add_block(block));
                assert!(!ids.wants_block());
            }
            seen.push(ids.draw().unwrap().0);
        }
        assert_eq!(seen, (0..3500).collect::<Vec<i64>>());
        assert_eq!(given, ProducerId(4000));
    }

    #[test]
    fn a_block_wanted_at_a_tenth_left() {
        let mut ids = ProducerIds::new();
        assert!(ids.add_block(ProducerIdBlock {
            start: ProducerId(5000),
            len: 1000
        }));
        for _ in 0..899 {
            ids.draw().unwrap();
        }
        assert!(!ids.wants_block());
        ids.draw().unwrap();
        assert!(ids.wants_block());
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        let mut ids = ProducerIds::new();
        for (start, len) in [(-1, 1000), (0, 0), (0, -5), (i64::MAX - 5, 1000)] {
            assert!(!ids.add_block(ProducerIdBlock {
                start: ProducerId(start),
                len
            }));
        }
        assert!(ids.add_block(ProducerIdBlock {
            start: ProducerId(1000),
            len: 1000
        }));
        assert!(!ids.add_block(ProducerIdBlock {
            start: ProducerId(2000),
            len: 1000
        }));
        ids.draw().unwrap();
        assert!(!ids.add_block(ProducerIdBlock {
            start: ProducerId(1500),
            len: 1000
        }));
        assert!(ids.add_block(ProducerIdBlock {
            start: ProducerId(7000),
            len: 1000
        }));
        assert_eq!(ProducerIdBlock::following(ProducerId(i64::MAX - 999)), None);
    }
}
