//! Only the client that was given the producer last may commit, add partitions, or go on from it.
//! A transactional id that has expired is nobody's: any client of it may go on, as in Kafka.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
pub struct FencedProducerNeverCommits {
    owners: BTreeMap<TransactionalId, usize>,
}

impl Invariant for FencedProducerNeverCommits {
    fn on(&mut self, event: &Event) {
        let Event::Record {
            record,
            client,
            resumes,
        } = event
        else {
            return;
        };
        let id = &record.transactional_id;
        let Some(metadata) = &record.metadata else {
            self.owners.remove(id);
            return;
        };
        match (metadata.state, client) {
            (TransactionState::Empty, Some(client)) => {
                let owner = self.owners.get(id);
                let is_owner = owner.is_none_or(|owner| owner == client);
                assert!(!resumes || is_owner, "{id}: {client} is back");
                self.owners.insert(id.clone(), *client);
            }
            (TransactionState::Ongoing | TransactionState::PrepareCommit, client) => {
                let owner = self.owners.get(id);
                assert_eq!(client.as_ref(), owner, "{id}: {:?}", metadata.state);
            }
            _ => {}
        }
    }
}
