//! BrokerHeartbeat (key 63): a broker's sign of life; with it it is unfenced, and says goodbye.

use kafka_protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use kafka_protocol::messages::broker_heartbeat_response::BrokerHeartbeatResponse;

use super::Node;
use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use super::rules;
use crate::config::NodeConfig;
use crate::metadata::planners::{
    check_broker_epoch, plan_controlled_shutdown, plan_directories_offline, plan_fence_broker,
    plan_unfence_broker,
};
use crate::metadata::{BrokerEpoch, DirectoryId, MetadataImage, Plan, PlanError};
use crate::types::{BrokerId, ErrorCode};

pub fn handle(
    context: Context,
    request: BrokerHeartbeatRequest,
) -> Handled<BrokerHeartbeatResponse> {
    Handled::later(async move {
        match beat(&context, &request).await {
            Ok(answer) => answer,
            // Until it is told otherwise a broker counts as fenced.
            Err(error) => BrokerHeartbeatResponse::default()
                .with_error_code(error.code())
                .with_is_fenced(true),
        }
    })
}

async fn beat(
    context: &Context,
    request: &BrokerHeartbeatRequest,
) -> Result<BrokerHeartbeatResponse, ErrorCode> {
    let node = &context.node;
    if !node.quorum.is_leader() {
        return Err(ErrorCode::NotController);
    }
    let broker = BrokerId(request.broker_id.0);
    let epoch = BrokerEpoch(request.broker_epoch);
    let image = node.image();
    check_broker_epoch(&image, broker, epoch).map_err(|error| error.code)?;
    let connection = context.connection.of_broker(broker);
    let now = node.clock.monotonic();
    node.sessions.lock().heard(broker, epoch, connection, now);
    let known = image.broker(broker).ok_or(ErrorCode::StaleBrokerEpoch)?;
    let offline = request.offline_log_dirs.iter().map(|id| DirectoryId(*id));
    let offline: Vec<DirectoryId> = offline.collect();
    if known.log_dirs.iter().any(|dir| offline.contains(dir)) {
        node.directories_offline(broker, epoch, offline).await?;
    }
    // The entry of its registration is the least that it must have seen.
    let is_caught_up = request.current_metadata_offset >= epoch.0;
    let change = if request.want_fence {
        // Also with the wish to stop: then nothing is handed over first.
        (!known.fenced).then_some(Change::Fence)
    } else if request.want_shut_down {
        Some(Change::ShutDown)
    } else {
        (known.fenced && is_caught_up).then_some(Change::Unfence)
    };
    if let Some(change) = change {
        let config = node.config();
        let planned = node.submit(move |image| change.plan(image, &config, broker, epoch));
        let planned = planned.await.map_err(|error| of_quorum(&error))?;
        planned.map_err(|error| error.code)?;
    }
    let image = node.image();
    let is_fenced = image.broker(broker).is_none_or(|known| known.fenced);
    Ok(BrokerHeartbeatResponse::default()
        .with_is_caught_up(is_caught_up)
        .with_is_fenced(is_fenced)
        .with_should_shut_down(request.want_shut_down))
}

impl Node {
    /// Directories of a broker have failed: others lead what it led there.
    pub async fn directories_offline(
        &self,
        broker: BrokerId,
        epoch: BrokerEpoch,
        offline: Vec<DirectoryId>,
    ) -> Result<(), ErrorCode> {
        let count = offline.len();
        let config = self.config();
        let planned = self.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_directories_offline(image, broker, epoch, &offline, &rules)
        });
        let planned = planned.await.map_err(|error| of_quorum(&error))?;
        planned.map_err(|error| error.code)?;
        tracing::warn!(
            broker = broker.0,
            count,
            "log directories of the broker are offline"
        );
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Change {
    ShutDown,
    Fence,
    Unfence,
}

impl Change {
    fn plan(
        self,
        image: &MetadataImage,
        config: &NodeConfig,
        broker: BrokerId,
        epoch: BrokerEpoch,
    ) -> Plan<Result<(), PlanError>> {
        let rules = rules::of_image(config, image);
        match self {
            Change::Fence => plan_fence_broker(image, broker, epoch, &rules),
            Change::Unfence => plan_unfence_broker(image, broker, epoch, &rules),
            Change::ShutDown => {
                let plan = plan_controlled_shutdown(image, broker, epoch, &rules);
                Plan {
                    records: plan.records,
                    answer: plan.answer.map(|_| ()),
                }
            }
        }
    }
}
