//! What other nodes may ask this one about the quorum. It is there before the quorum is: nodes that
//! are to form a cluster find one another through it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::peer::{
    METADATA_FETCH, PrivateRequest, QUORUM_HELLO, QUORUM_JOIN, QUORUM_PRE_VOTE,
    RAFT_APPEND_ENTRIES, RAFT_INSTALL_SNAPSHOT, RAFT_VOTE,
};
use crate::types::{BrokerId, Offset};

use super::network::RaftRpc;
use super::rpc::{
    Content, FetchAnswer, FetchRequest, HelloAnswer, HelloRequest, JoinAnswer, JoinRequest,
    PreVoteAnswer, PreVoteRequest, Status, unwrap,
};
use super::{Quorum, QuorumError, keys};

/// A node that fetched within this time is shown among the observers.
pub const OBSERVER_MAX: Duration = Duration::from_secs(300);

/// Answers the private APIs of the quorum.
pub struct Endpoint {
    node_id: BrokerId,
    quorum: OnceLock<Weak<Quorum>>,
    looking: OnceLock<Looking>,
    observers: Mutex<BTreeMap<BrokerId, Observed>>,
}

/// What a node whose store belongs to no cluster yet tells while it looks for the others.
#[derive(Debug, Clone)]
pub(super) struct Looking {
    pub directory_id: Uuid,
    /// The voters that it lists.
    pub listed: BTreeMap<BrokerId, String>,
    pub had_cluster: bool,
}

/// How far a node that does not vote has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    pub offset: Offset,
    /// On the clock of [`Duration`]s that the caller uses.
    pub fetched_at: Duration,
}

impl Endpoint {
    pub fn new(node_id: BrokerId) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            node_id,
            quorum: OnceLock::new(),
            looking: OnceLock::new(),
            observers: Mutex::default(),
        })
    }

    pub(super) fn looks_for_others(&self, looking: Looking) {
        let _ = self.looking.set(looking);
    }

    pub(super) fn serve(&self, quorum: &Arc<Quorum>) {
        let _ = self.quorum.set(Arc::downgrade(quorum));
    }

    fn quorum(&self) -> Option<Arc<Quorum>> {
        self.quorum.get().and_then(Weak::upgrade)
    }

    /// The nodes that follow without a vote.
    pub fn observers(&self) -> BTreeMap<BrokerId, Observed> {
        self.observers.lock().clone()
    }

    /// Answers `request` at time `now`. `None`: it is not the quorum's, or cannot be read.
    pub async fn answer(&self, request: &PrivateRequest, now: Duration) -> Option<Vec<u8>> {
        let body = &*request.body;
        let raft = |rpc| self.raft(rpc, body);
        Some(match request.api {
            api if *api == RAFT_APPEND_ENTRIES => raft(RaftRpc::AppendEntries).await,
            api if *api == RAFT_VOTE => raft(RaftRpc::Vote).await,
            api if *api == RAFT_INSTALL_SNAPSHOT => raft(RaftRpc::InstallSnapshot).await,
            api if *api == QUORUM_HELLO => keys::encode(&self.hello(read(body)?)?),
            api if *api == QUORUM_PRE_VOTE => keys::encode(&self.pre_vote(&read(body)?)),
            api if *api == QUORUM_JOIN => keys::encode(&self.join(read(body)?).await),
            api if *api == METADATA_FETCH => keys::encode(&self.fetch(read(body)?, now).await),
            _ => return None,
        })
    }

    fn hello(&self, _request: HelloRequest) -> Option<HelloAnswer> {
        if let Some(quorum) = self.quorum() {
            let (leader, term) = quorum.leader_and_term();
            return Some(HelloAnswer {
                node_id: self.node_id,
                directory_id: quorum.directory_id(),
                cluster_id: Some(quorum.cluster_id().to_string()),
                leader,
                term,
                voters: quorum.voters(),
                listed: quorum.listed(),
                had_cluster: false,
            });
        }
        // Before that is known there is nothing to tell.
        let looking = self.looking.get()?.clone();
        Some(HelloAnswer {
            node_id: self.node_id,
            directory_id: looking.directory_id,
            cluster_id: None,
            leader: None,
            term: 0,
            voters: Vec::new(),
            listed: looking.listed,
            had_cluster: looking.had_cluster,
        })
    }

    async fn raft(&self, rpc: RaftRpc, body: &[u8]) -> Vec<u8> {
        let refused = |status: Status| vec![status as u8];
        let Some(quorum) = self.quorum() else {
            return refused(Status::NotReady);
        };
        let Ok((header, message)) = unwrap(body) else {
            return refused(Status::Failed);
        };
        if header.cluster_id != **quorum.cluster_id() {
            tracing::warn!(
                source = header.source.0,
                cluster_id = header.cluster_id,
                "a message of another cluster"
            );
            return refused(Status::OtherCluster);
        }
        if header.target != self.node_id {
            return refused(Status::OtherNode);
        }
        let directory_id = header.target_directory_id;
        if !directory_id.is_nil() && directory_id != quorum.directory_id() {
            return refused(Status::OtherDirectory);
        }
        if rpc != RaftRpc::Vote {
            quorum.hear(header.source);
        }
        match quorum.handle_rpc(rpc, message).await {
            Ok(answer) => {
                let mut taken = vec![Status::Taken as u8];
                taken.extend(answer);
                taken
            }
            Err(error) => {
                tracing::warn!("the message of voter {}: {error}", header.source);
                refused(Status::Failed)
            }
        }
    }

    fn pre_vote(&self, request: &PreVoteRequest) -> PreVoteAnswer {
        match self.quorum() {
            Some(quorum) => quorum.pre_vote(request),
            None => PreVoteAnswer { is_granted: false },
        }
    }

    async fn join(&self, request: JoinRequest) -> JoinAnswer {
        let Some(quorum) = self.quorum() else {
            return JoinAnswer::NotLeader { leader: None };
        };
        if request.cluster_id != **quorum.cluster_id() {
            let reason = format!("this is cluster {}", quorum.cluster_id());
            return JoinAnswer::Refused { reason };
        }
        match quorum.give_place(request.voter).await {
            Ok(()) => JoinAnswer::Voter,
            Err(QuorumError::NotController { leader }) => JoinAnswer::NotLeader { leader },
            Err(error) => JoinAnswer::Refused {
                reason: error.to_string(),
            },
        }
    }

    async fn fetch(&self, request: FetchRequest, now: Duration) -> FetchAnswer {
        let Some(quorum) = self.quorum() else {
            return FetchAnswer::Refused { cluster_id: None };
        };
        let cluster_id = quorum.cluster_id().to_string();
        if request
            .cluster_id
            .as_ref()
            .is_some_and(|theirs| *theirs != cluster_id)
        {
            let cluster_id = Some(cluster_id);
            return FetchAnswer::Refused { cluster_id };
        }
        let observed = Observed {
            offset: Offset(request.offset),
            fetched_at: now,
        };
        self.observers.lock().insert(request.node_id, observed);
        let known = (request.leader, request.term);
        let max_wait = Duration::from_millis(request.max_wait_ms.into());
        let wait = quorum.wait_for_news(Offset(request.offset), known);
        // In time or not, what there is is told.
        let _ = tokio::time::timeout(max_wait, wait).await;
        let (leader, term) = quorum.leader_and_term();
        FetchAnswer::Taken {
            cluster_id,
            leader,
            term,
            voters: quorum.voters(),
            content: match quorum.image().offset() > Offset(request.offset) {
                true => quorum.content_after(Offset(request.offset)),
                false => Content::Nothing,
            },
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<T> {
    keys::decode("the question of a node", body).ok()
}
