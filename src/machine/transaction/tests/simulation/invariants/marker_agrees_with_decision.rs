//! A marker is written only after its outcome is in the log, as the log has it, and only into
//! partitions of its transaction.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct MarkerAgreesWithDecision {
    prepared: BTreeMap<(TransactionalId, TimestampMs), TransactionMetadata>,
}

impl Invariant for MarkerAgreesWithDecision {
    fn on(&mut self, event: &Event) {
        match event {
            Event::Record { record, .. } => {
                let Some(metadata) = &record.metadata else {
                    return;
                };
                if metadata.state.is_prepared() {
                    let name = (
                        record.transactional_id.clone(),
                        metadata.last_update_timestamp,
                    );
                    let before = self.prepared.insert(name.clone(), metadata.clone());
                    assert_eq!(before, None, "{name:?} names two transactions");
                }
            }
            Event::Marker { partition, markers } => {
                let name = (markers.transactional_id.clone(), markers.prepared_at);
                let decision = self
                    .prepared
                    .get(&name)
                    .expect("a marker without a decision");
                assert_eq!(decision.result(), Some(markers.result));
                assert_eq!(decision.producer(), markers.producer);
                assert!(decision.partitions.contains(partition));
            }
            _ => {}
        }
    }
}
