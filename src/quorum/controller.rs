//! The controller: one task that runs planners one after the other and commits what they plan.
//!
//! 1. A planner sees every record that an earlier planner planned, committed or not.
//! 2. What waits when a commit ends goes into one entry, so a burst of changes costs few syncs.
//! 3. An answer leaves once every record it may rest on is committed and applied: its own, and
//!    those of the planners before it.
//! 4. Only one entry is under way at a time. When it fails, nothing was planned on top of it.
//!
//! ```text
//! submit ─┐                    ┌─ plan ─ plan ─ plan ─┐
//! submit ─┼─> waiting jobs ──> │  on a growing image  │──> one entry ──> commit, apply ──> answers
//! submit ─┘                    └──────────────────────┘
//! ```

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openraft::error::{CheckIsLeaderError, ClientWriteError, RaftError};
use tokio::sync::{mpsc, oneshot};

use crate::host::turns;
use crate::metadata::{ImageDelta, MetadataImage, MetadataRecord, Plan, bootstrap_records};

use super::QuorumError;
use super::published::Published;
use super::raft_types::{Batch, Raft, broker_id};

/// An entry is closed once it has this many records.
const RECORDS_PER_ENTRY: usize = 10_000;

/// A planner that waits for its turn.
pub(super) trait Job: Send {
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    fn plan(self: Box<Self>, image: &MetadataImage) -> Planned;
    fn refuse(self: Box<Self>, error: QuorumError);
}

/// Gives a planner's answer to who waits for it, or the reason why it was not committed.
type Answer = Box<dyn FnOnce(Result<(), QuorumError>) + Send>;

/// What a planner planned, and how to answer.
pub(super) struct Planned {
    records: Vec<MetadataRecord>,
    answer: Answer,
}

struct PlannerJob<T, F> {
    planner: F,
    sender: oneshot::Sender<Result<T, QuorumError>>,
}

/// A job, and where its answer comes out. No answer comes when the planner panics.
pub(super) fn job<T, F>(planner: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T, QuorumError>>)
where
    T: Send + 'static,
    F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    (Box::new(PlannerJob { planner, sender }), receiver)
}

impl<T, F> Job for PlannerJob<T, F>
where
    T: Send + 'static,
    F: FnOnce(&MetadataImage) -> Plan<T> + Send + 'static,
{
    fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    fn plan(self: Box<Self>, image: &MetadataImage) -> Planned {
        let Plan { records, answer } = (self.planner)(image);
        let sender = self.sender;
        Planned {
            records,
            answer: Box::new(move |committed| {
                // It does not matter whether somebody still waits: the change was made.
                let _ = sender.send(committed.map(|()| answer));
            }),
        }
    }

    fn refuse(self: Box<Self>, error: QuorumError) {
        let _ = self.sender.send(Err(error));
    }
}

pub(super) struct Controller {
    pub(super) raft: Raft,
    pub(super) published: Arc<Published>,
    pub(super) cluster_id: Arc<str>,
    pub(super) min_insync_replicas: i32,
    pub(super) appended_bytes: Arc<AtomicU64>,
    pub(super) snapshot_bytes: u64,
}

/// What goes into one entry.
struct Group {
    image: MetadataImage,
    records: Vec<MetadataRecord>,
    answers: Vec<Answer>,
}

impl Controller {
    /// Runs until the last sender is gone.
    pub(super) async fn run(self, mut jobs: mpsc::UnboundedReceiver<Box<dyn Job>>) {
        let mut waiting = VecDeque::new();
        let mut arrived = Vec::new();
        // The term in which this node leads and has applied all that earlier leaders left.
        let mut led_term = None;
        while jobs.recv_many(&mut arrived, usize::MAX).await > 0 {
            waiting.extend(arrived.drain(..));
            while !waiting.is_empty() {
                if let Err(error) = self.lead(&mut led_term).await {
                    refuse_all(&mut waiting, || same(&error));
                    break;
                }
                // Thousands of topics may be planned at once.
                let group = turns::in_place(|| self.plan_group(&mut waiting));
                self.commit_group(group).await;
                while let Ok(job) = jobs.try_recv() {
                    waiting.push_back(job);
                }
            }
        }
    }

    /// Makes sure that this node leads and that its image has all that was ever committed.
    async fn lead(&self, led_term: &mut Option<u64>) -> Result<(), QuorumError> {
        let (leads, term, is_single) = {
            let metrics = self.raft.metrics();
            let metrics = metrics.borrow();
            (
                metrics.current_leader == Some(metrics.id),
                metrics.current_term,
                metrics.membership_config.voter_ids().count() == 1,
            )
        };
        if leads && *led_term == Some(term) {
            return Ok(());
        }
        self.raft
            .ensure_linearizable()
            .await
            .map_err(|error| match error {
                RaftError::APIError(CheckIsLeaderError::ForwardToLeader(to)) => {
                    QuorumError::NotController {
                        leader: to.leader_id.map(broker_id),
                    }
                }
                RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_)) => {
                    QuorumError::NotController { leader: None }
                }
                RaftError::Fatal(fatal) => fatal.into(),
            })?;
        // A leader that comes back leads on in its old term, without an entry that ends what was
        // there before, and does not know any more how much of it was committed. This entry comes
        // after all of that, and is applied when this returns. (What a single voter has is
        // committed.)
        if !is_single {
            self.commit(Vec::new()).await?;
        }
        if self.published.image().cluster_id().is_none() {
            let first = bootstrap_records(self.cluster_id.clone(), self.min_insync_replicas);
            self.commit(first).await?;
        }
        *led_term = Some(term);
        Ok(())
    }

    /// Plans jobs until none waits or the entry is full. Jobs that need nothing committed are
    /// answered on the way.
    fn plan_group(&self, waiting: &mut VecDeque<Box<dyn Job>>) -> Group {
        let mut image = self.published.image().as_ref().clone();
        image.begin_entry(image.offset().next(), image.epoch());
        let mut group = Group {
            image,
            records: Vec::new(),
            answers: Vec::new(),
        };
        while group.records.len() < RECORDS_PER_ENTRY
            && let Some(job) = waiting.pop_front()
        {
            if !job.is_abandoned() {
                group.add(job);
            }
        }
        group
    }

    async fn commit_group(&self, group: Group) {
        if group.records.is_empty() {
            return;
        }
        let committed = self.commit(group.records).await;
        for answer in group.answers {
            answer(match &committed {
                Ok(()) => Ok(()),
                Err(error) => Err(same(error)),
            });
        }
        if self.appended_bytes.load(Ordering::Relaxed) >= self.snapshot_bytes {
            self.appended_bytes.store(0, Ordering::Relaxed);
            // It can only fail when the quorum stops; the next commit says so.
            let _ = self.raft.trigger().snapshot().await;
        }
    }

    async fn commit(&self, records: Vec<MetadataRecord>) -> Result<(), QuorumError> {
        match self.raft.client_write(Batch(records.into())).await {
            Ok(_) => Ok(()),
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(to))) => {
                Err(QuorumError::NotController {
                    leader: to.leader_id.map(broker_id),
                })
            }
            Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(_))) => {
                unreachable!("a batch of records changes no membership")
            }
            Err(RaftError::Fatal(fatal)) => Err(fatal.into()),
        }
    }
}

impl Group {
    /// Runs one planner on the image as the planners before it left it.
    fn add(&mut self, job: Box<dyn Job>) {
        // The image is a value that a planner can only read: a panic leaves nothing half done.
        let planned = catch_unwind(AssertUnwindSafe(|| job.plan(&self.image)));
        let Ok(Planned { records, answer }) = planned else {
            return;
        };
        if records.is_empty() {
            match self.records.is_empty() {
                true => answer(Ok(())),
                false => self.answers.push(answer),
            }
            return;
        }
        let mut next = self.image.clone();
        let mut delta = ImageDelta::default();
        for record in &records {
            if let Err(error) = next.apply(record, &mut delta) {
                return answer(Err(QuorumError::Plan(error)));
            }
        }
        self.image = next;
        self.records.extend(records);
        self.answers.push(answer);
    }
}

fn refuse_all(waiting: &mut VecDeque<Box<dyn Job>>, error: impl Fn() -> QuorumError) {
    for job in waiting.drain(..) {
        job.refuse(error());
    }
}

/// The same error for everybody who waited. Why a quorum stopped is told by `Quorum::stopped`.
fn same(error: &QuorumError) -> QuorumError {
    match error {
        QuorumError::NotController { leader } => QuorumError::NotController { leader: *leader },
        _ => QuorumError::Stopped,
    }
}
