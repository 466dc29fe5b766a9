//! The lines in the log that say which node is the active controller, or that none is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Node;
use crate::host::tasks;
use crate::types::BrokerId;

use super::background::until;

/// An election takes less; a node without a controller for so long has lost the majority.
const ELECTION_MAX: Duration = Duration::from_secs(3);

/// The active controller and its epoch, as a node knows them.
type Known = (Option<BrokerId>, u64);

/// Speaks of each change until the node stops.
pub fn start_controller_log(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    let node = node.clone();
    let work = async move {
        let mut told = (None, 0);
        loop {
            let known = node.quorum.leader_and_term();
            if let (Some(leader), epoch) = known
                && known != told
            {
                tracing::info!(epoch, "{}", line(leader, node.broker_id));
                told = known;
            }
            let news = node.quorum.wait_for_leader(known);
            if tokio::time::timeout(ELECTION_MAX, news).await.is_err() && is_alone(known, told) {
                tracing::warn!("no controller is active: no majority of the controllers answers");
                told = known;
            }
        }
    };
    drop(tasks::spawn(until(stopping.clone(), work)));
}

fn line(leader: BrokerId, own: BrokerId) -> String {
    match leader == own {
        true => "this node is the active controller".to_owned(),
        false => format!("node {leader} is the active controller"),
    }
}

/// Whether there is no controller, and nobody has said so.
fn is_alone(known: Known, told: Known) -> bool {
    known.0.is_none() && told.0.is_some()
}
