//! A prepared outcome is followed by its completion and by nothing else, in the log itself; and
//! every step in the log is one of the table.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct OutcomeNeverChanges {
    last: BTreeMap<TransactionalId, TransactionMetadata>,
}

impl Invariant for OutcomeNeverChanges {
    fn on(&mut self, event: &Event) {
        let Event::Record { record, .. } = event else {
            return;
        };
        let id = record.transactional_id.clone();
        let Some(next) = record.metadata.clone() else {
            let last = self.last.remove(&id).expect("only what is there expires");
            assert!(last.state.may_expire(), "{id} expired in {:?}", last.state);
            return;
        };
        if let Some(last) = self.last.insert(id.clone(), next.clone()) {
            assert!(
                last.state.may_become(next.state),
                "{id}: {last:?} to {next:?}"
            );
            assert!(last.last_update_timestamp <= next.last_update_timestamp);
            if last.state.is_prepared() {
                assert_eq!(last.result(), next.result());
                assert_eq!(last.start_timestamp, next.start_timestamp);
            }
            if next.state == TransactionState::Ongoing || next.state.is_prepared() {
                assert!(
                    next.partitions.is_superset(&last.partitions),
                    "{id} lost a partition"
                );
            }
        }
    }
}
