//! The metadata on a node without a vote: it asks a controller for what comes after what it has,
//! and is answered as soon as there is something.
//!
//! 1. Only what is committed is told, so nothing is ever taken back. What a node has is a prefix of
//!    the log whoever it asks.
//! 2. The leader is asked where it is known, else the controllers in turn: any has the committed
//!    metadata, if a moment later.
//! 3. Nothing is kept on disk. A node that starts gets the image as a whole, as it could not serve
//!    without a controller anyway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::host::{tasks, turns};
use crate::metadata::{ImageDelta, MetadataImage};
use crate::peer::METADATA_FETCH;
use crate::types::{BrokerId, Offset, with_causes};

use super::peer_transport::PeerTransport;
use super::published::Published;
use super::reasons::Reasons;
use super::rpc::{Content, FetchAnswer, FetchRequest, VoterInfo};
use super::snapshot_store::image_at;
use super::{QuorumError, Waiting};

const MAX_WAIT_MS: u32 = 500;
/// A controller that answers nothing for so long is left for another.
const ASK_MAX: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// What a controller told of the quorum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Seen {
    pub leader: Option<BrokerId>,
    pub term: u64,
    pub voters: Vec<VoterInfo>,
}

pub(super) struct Follower {
    node_id: BrokerId,
    cluster_id: Option<String>,
    /// Those of the configuration: where to begin.
    controllers: Vec<String>,
    published: Arc<Published>,
    image: MetadataImage,
    seen: watch::Sender<Seen>,
    /// Counts the tries, so that the controllers have their turns.
    turn: usize,
    reasons: Reasons,
}

impl Follower {
    pub(super) fn new(
        node_id: BrokerId,
        cluster_id: Option<String>,
        controllers: Vec<String>,
        published: &Arc<Published>,
    ) -> Follower {
        Follower {
            node_id,
            cluster_id,
            controllers,
            published: published.clone(),
            image: MetadataImage::empty(),
            seen: watch::Sender::default(),
            turn: 0,
            reasons: Reasons::default(),
        }
    }

    /// Waits for the first answer, which names the cluster, and follows from then on.
    pub(super) async fn start(
        mut self,
        transport: Arc<PeerTransport>,
        waiting: &Waiting,
    ) -> Result<(String, watch::Receiver<Seen>), QuorumError> {
        let receiver = self.seen.subscribe();
        waiting.waits_for("a controller that tells the metadata");
        let mut answers = BTreeMap::new();
        let cluster_id = loop {
            let asked = self.next_address();
            let answer = match self.fetch(&transport).await {
                Ok(()) => match &self.cluster_id {
                    Some(cluster_id) if self.image.cluster_id().is_some() => {
                        break cluster_id.clone();
                    }
                    _ => "it has no metadata yet".to_owned(),
                },
                Err(error @ QuorumError::ForeignCluster { .. }) => return Err(error),
                Err(error) => {
                    tokio::time::sleep(ASK_AGAIN * 5).await;
                    with_causes(&error)
                }
            };
            answers.insert(asked, answer);
            let told = answers
                .iter()
                .map(|(asked, answer)| format!("{asked}: {answer}"));
            waiting.because(&told.collect::<Vec<_>>().join("; "));
        };
        drop(tasks::spawn(self.follow(transport)));
        Ok((cluster_id, receiver))
    }

    /// Follows for as long as somebody looks.
    async fn follow(mut self, transport: Arc<PeerTransport>) {
        while !self.seen.is_closed() {
            if let Err(error) = self.fetch(&transport).await {
                let reason = with_causes(&error);
                match self.reasons.is_due(&reason, Instant::now()) {
                    true => tracing::warn!("the metadata cannot be followed: {reason}"),
                    false => tracing::debug!("the metadata cannot be followed: {reason}"),
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }

    /// Asks once. After an error the next controller has its turn.
    async fn fetch(&mut self, transport: &Arc<PeerTransport>) -> Result<(), QuorumError> {
        let fetched = self.ask(transport).await;
        if fetched.is_err() {
            self.turn += 1;
        }
        self.take(fetched?)?;
        self.reasons.forget();
        Ok(())
    }

    /// Of the controller whose turn it is.
    fn next_address(&self) -> String {
        let known = self.seen.borrow();
        let leads = |voter: &&VoterInfo| Some(voter.id) == known.leader;
        let leader = known.voters.iter().find(leads);
        let leader = leader.map(|leader| &leader.address);
        let addresses: Vec<&String> = leader.into_iter().chain(&self.controllers).collect();
        addresses[self.turn % addresses.len()].clone()
    }

    async fn ask(&self, transport: &Arc<PeerTransport>) -> Result<FetchAnswer, QuorumError> {
        let known = self.seen.borrow().clone();
        let address = self.next_address();
        let request = FetchRequest {
            cluster_id: self.cluster_id.clone(),
            node_id: self.node_id,
            offset: self.image.offset().0,
            max_wait_ms: MAX_WAIT_MS,
            leader: known.leader,
            term: known.term,
        };
        let answer = transport.ask(&address, &METADATA_FETCH, &request, ASK_MAX);
        answer
            .await
            .map_err(|source| QuorumError::NoAnswer { address, source })
    }

    fn take(&mut self, answer: FetchAnswer) -> Result<(), QuorumError> {
        let (cluster_id, seen, content) = match answer {
            FetchAnswer::Refused { cluster_id } => {
                self.turn += 1;
                return Err(match (cluster_id, &self.cluster_id) {
                    (Some(found), Some(expected)) => QuorumError::ForeignCluster {
                        found: Some(found),
                        expected: expected.clone(),
                    },
                    _ => QuorumError::NotController { leader: None },
                });
            }
            FetchAnswer::Taken {
                cluster_id,
                leader,
                term,
                voters,
                content,
            } => {
                let seen = Seen {
                    leader,
                    term,
                    voters,
                };
                (cluster_id, seen, content)
            }
        };
        self.cluster_id.get_or_insert(cluster_id);
        // One that lags behind may name an older leader.
        let newer =
            |old: &Seen| (seen.term, seen.leader.is_some()) >= (old.term, old.leader.is_some());
        if newer(&self.seen.borrow()) && *self.seen.borrow() != seen {
            self.seen.send_replace(seen);
            self.turn = 0;
        }
        // Thousands of topics may come at once.
        turns::in_place(|| self.apply(content))
    }

    fn apply(&mut self, content: Content) -> Result<(), QuorumError> {
        match content {
            Content::Nothing => Ok(()),
            Content::Image {
                offset,
                epoch,
                bytes,
            } => {
                // From one that is behind this node.
                if Offset(offset) <= self.image.offset() {
                    return Ok(());
                }
                self.image = image_at(Some((Offset(offset), epoch)), &bytes)?;
                let delta = ImageDelta::everything();
                self.published.publish(self.image.clone(), &delta);
                Ok(())
            }
            Content::Entries(entries) => {
                let mut delta = ImageDelta::default();
                let mut next = self.image.clone();
                for entry in entries {
                    if entry.offset <= next.offset().0 {
                        continue;
                    }
                    if entry.offset != next.offset().0 + 1 {
                        return Err(super::keys::damaged("the metadata", "it has a gap".into()));
                    }
                    next.begin_entry(Offset(entry.offset), entry.epoch);
                    for record in entry.records.iter() {
                        let applied = next.apply(record, &mut delta);
                        applied.map_err(QuorumError::Plan)?;
                    }
                }
                self.image = next;
                self.published.publish(self.image.clone(), &delta);
                Ok(())
            }
        }
    }
}
