//! What a client was told is what became of every record of that transaction, in all partitions;
//! and once all is healed, no record is left undecided.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct AckedOutcomeIsWhole {
    told: BTreeMap<Txn, TransactionResult>,
    appended: BTreeMap<Txn, usize>,
    decided: BTreeMap<Txn, Vec<TransactionResult>>,
}

impl Invariant for AckedOutcomeIsWhole {
    fn on(&mut self, event: &Event) {
        match event {
            Event::Told { txn, result } => {
                let before = self.told.insert(*txn, *result);
                assert!(
                    before.is_none_or(|before| before == *result),
                    "{txn:?} told twice"
                );
            }
            Event::Appended { txn, .. } => *self.appended.entry(*txn).or_default() += 1,
            Event::Decided { txn, result } => self.decided.entry(*txn).or_default().push(*result),
            _ => {}
        }
    }

    fn at_end(&self) {
        for (txn, count) in &self.appended {
            let decided = self.decided.get(txn).map_or(&[][..], |results| results);
            assert_eq!(decided.len(), *count, "{txn:?} is not decided everywhere");
            if let Some(told) = self.told.get(txn) {
                assert!(
                    decided.iter().all(|result| result == told),
                    "{txn:?}: told {told:?}"
                );
            }
        }
    }
}
