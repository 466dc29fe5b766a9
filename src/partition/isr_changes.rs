//! The ISR changes that this broker's leaders want, on their way to the active controller
//! (AlterPartition).
//!
//! 1. One request is under way at a time; what is wanted meanwhile goes with the next one.
//! 2. A change is asked for until it is decided, refused for good, or overtaken by the metadata:
//!    the partition says which, after every answer.
//! 3. A change may be decided without an answer reaching us. So it names the partition epoch it was
//!    made from, and is refused when it comes a second time.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::outbox::{Message, Outbox};
use super::registry::Partitions;
use crate::machine::replica_set::{Decided, IsrProposal};
use crate::types::{ErrorCode, TopicId};

/// How long after a refusal it is tried again (as Kafka's AlterPartitionManager).
const RETRY: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrChange {
    pub topic_id: TopicId,
    pub partition: i32,
    pub proposal: IsrProposal,
}

/// One answer to each change in their order, or an error of the whole request.
pub type IsrAnswers = Result<Vec<Result<Decided, ErrorCode>>, ErrorCode>;

/// The way to the active controller.
pub trait IsrController: Send + Sync + 'static {
    fn alter<'a>(
        &'a self,
        broker_epoch: i64,
        changes: &'a [IsrChange],
    ) -> Pin<Box<dyn Future<Output = IsrAnswers> + Send + 'a>>;
}

impl Message for IsrChange {
    const COUNT_MAX: usize = 10_000;

    fn replica(&self) -> (TopicId, i32) {
        (self.topic_id, self.partition)
    }
}

pub type IsrChanges = Outbox<IsrChange>;

impl Partitions {
    /// Takes ISR changes to the controller, for as long as it is polled.
    pub async fn run_isr_changes(&self, controller: &dyn IsrController) {
        let changes = &self.surroundings().isr_changes;
        loop {
            let taken = changes.take();
            if taken.is_empty() {
                changes.news().await;
                continue;
            }
            let broker_epoch = self.surroundings().broker_epoch().0;
            let answers = controller.alter(broker_epoch, &taken).await;
            if self.take_isr_answers(taken, answers) {
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Hands answers to their partitions; `true` if some change is to be asked for again.
    pub(super) fn take_isr_answers(&self, taken: Vec<IsrChange>, answers: IsrAnswers) -> bool {
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                tracing::debug!(error = error.name(), "ISR changes were not answered");
                vec![Err(error); taken.len()]
            }
        };
        let mut retry = false;
        for (change, answer) in taken.into_iter().zip(answers) {
            let Some(partition) = self.get(change.topic_id, change.partition) else {
                continue;
            };
            if partition.on_isr_answer(&change.proposal, answer) {
                retry = true;
                self.surroundings().isr_changes.again(change);
            }
        }
        retry
    }
}
