//! In which directory each of this broker's replicas is, on its way to the active controller
//! (AssignReplicasToDirs).
//!
//! 1. One request is under way at a time; what is wanted meanwhile goes with the next one.
//! 2. What was answered is done with, also by a refusal: the next change of the metadata shows
//!    whether there is more to tell.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::registry::Partitions;
use crate::metadata::DirectoryId;
use crate::types::{ErrorCode, TopicId};

/// How long after a request without an answer it is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Replicas in one request at most (as Kafka's AssignmentsManager).
const REPLICAS_MAX: usize = 2250;

/// One replica of this broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    pub topic_id: TopicId,
    pub partition: i32,
    pub directory: DirectoryId,
}

/// One answer to each replica in their order, or an error of the whole request.
pub type AssignmentAnswers = Result<Vec<Result<(), ErrorCode>>, ErrorCode>;

/// The way to the active controller.
pub trait DirectoryController: Send + Sync + 'static {
    fn assign<'a>(
        &'a self,
        broker_epoch: i64,
        assignments: &'a [Assignment],
    ) -> Pin<Box<dyn Future<Output = AssignmentAnswers> + Send + 'a>>;
}

#[derive(Default)]
pub struct Assignments {
    wanted: Mutex<BTreeMap<(TopicId, i32), DirectoryId>>,
    news: Notify,
}

impl Assignments {
    /// A newer place takes that of an older one.
    pub fn want(&self, assignment: Assignment) {
        let key = (assignment.topic_id, assignment.partition);
        self.wanted.lock().insert(key, assignment.directory);
        self.news.notify_one();
    }

    /// The metadata has it right, or the replica is gone.
    pub fn forget(&self, topic_id: TopicId, partition: i32) {
        self.wanted.lock().remove(&(topic_id, partition));
    }

    pub(super) fn take(&self) -> Vec<Assignment> {
        let mut wanted = self.wanted.lock();
        let mut taken = Vec::new();
        while taken.len() < REPLICAS_MAX
            && let Some(((topic_id, partition), directory)) = wanted.pop_first()
        {
            taken.push(Assignment {
                topic_id,
                partition,
                directory,
            });
        }
        taken
    }

    /// Not answered: again, unless there is a newer one.
    fn again(&self, assignment: Assignment) {
        let key = (assignment.topic_id, assignment.partition);
        let mut wanted = self.wanted.lock();
        wanted.entry(key).or_insert(assignment.directory);
    }
}

impl Partitions {
    /// Tells the controller where replicas are, for as long as it is polled.
    pub async fn run_assignments(&self, controller: &dyn DirectoryController) {
        let assignments = &self.surroundings().assignments;
        loop {
            let taken = assignments.take();
            if taken.is_empty() {
                assignments.news.notified().await;
                continue;
            }
            let broker_epoch = self.surroundings().broker_epoch().0;
            match controller.assign(broker_epoch, &taken).await {
                Ok(answers) => {
                    let refused = answers.iter().filter(|answer| answer.is_err()).count();
                    if refused > 0 {
                        tracing::debug!(refused, "the directories of replicas were refused");
                    }
                }
                Err(error) => {
                    let error = error.name();
                    tracing::debug!(error, "the directories of replicas were not taken");
                    taken.into_iter().for_each(|one| assignments.again(one));
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
