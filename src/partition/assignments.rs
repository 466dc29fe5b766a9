//! In which directory each of this broker's replicas is, on its way to the active controller
//! (AssignReplicasToDirs).
//!
//! 1. One request is under way at a time; what is wanted meanwhile goes with the next one.
//! 2. The controller hears of a log once its name in the directory is durable: that it is not there
//!    is then a sign of damage (`lost`). What came together is synced together.
//! 3. What was answered is done with, also by a refusal: the next change of the metadata shows
//!    whether there is more to tell.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::outbox::{Message, Outbox};
use super::registry::Partitions;
use crate::host::tasks;
use crate::metadata::DirectoryId;
use crate::types::{ErrorCode, TopicId, with_causes};

/// How long after a request without an answer it is tried again.
const RETRY: Duration = Duration::from_millis(500);

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

impl Message for Assignment {
    /// As Kafka's AssignmentsManager.
    const COUNT_MAX: usize = 2250;

    fn replica(&self) -> (TopicId, i32) {
        (self.topic_id, self.partition)
    }
}

pub type Assignments = Outbox<Assignment>;

impl Partitions {
    /// Tells the controller where replicas are, for as long as it is polled.
    pub async fn run_assignments(self: &Arc<Self>, controller: &dyn DirectoryController) {
        let assignments = &self.surroundings().assignments;
        loop {
            let taken = assignments.take();
            if taken.is_empty() {
                assignments.news().await;
                continue;
            }
            self.sync_names().await;
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

    /// Makes durable that the logs are there which were made until now.
    async fn sync_names(self: &Arc<Self>) {
        let partitions = Arc::clone(self);
        let synced = tasks::spawn_blocking(move || {
            for dir in partitions.working_dirs() {
                if let Err(error) = dir.sync_names() {
                    // It is offline, which the controller hears as well.
                    tracing::error!("{}", with_causes(&error));
                }
            }
        });
        if let Err(error) = synced.await {
            tracing::error!("syncing the log directories failed: {error}");
        }
    }
}
