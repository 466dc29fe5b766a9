//! Only the client that was given the producer last may commit, add partitions, or go on from it.

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
        let (id, Some(metadata)) = (&record.transactional_id, &record.metadata) else {
            return;
        };
        match (metadata.state, client) {
            (TransactionState::Empty, Some(client)) => {
                let owner = self.owners.get(id);
                assert!(!resumes || owner == Some(client), "{id}: {client} is back");
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
