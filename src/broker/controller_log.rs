//! The lines in the log that say which node is the active controller, or that none is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Node;
use crate::host::tasks;
use crate::types::BrokerId;

use super::background::until;

/// How often it is looked whether the controller is heard.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// An election takes less; a node without a controller for so long has lost the majority.
const ELECTION_MAX: Duration = Duration::from_secs(3);

/// Speaks of each change until the node stops.
pub fn start_controller_log(node: &Arc<Node>, stopping: &watch::Receiver<bool>) {
    let node = node.clone();
    let work = async move {
        let mut told = None;
        let mut heard_at = node.clock.monotonic();
        loop {
            let known = node.quorum.leader_and_term();
            let now = node.clock.monotonic();
            match node.quorum.active_controller() {
                // Before it is heard, what the log of the quorum says is of an earlier one.
                Some(leader) => {
                    heard_at = now;
                    if told != Some((leader, known.1)) {
                        tracing::info!(epoch = known.1, "{}", line(leader, node.broker_id));
                        told = Some((leader, known.1));
                    }
                }
                None if told.is_some() && now.saturating_sub(heard_at) >= ELECTION_MAX => {
                    tracing::warn!("no controller is active: no majority of them answers");
                    told = None;
                }
                None => {}
            }
            let news = node.quorum.wait_for_leader(known);
            let _ = tokio::time::timeout(LOOK_EVERY, news).await;
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
