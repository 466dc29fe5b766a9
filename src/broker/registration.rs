//! How the cluster knows this broker: its registration, made anew at each start.

use super::StartError;
use crate::api::{Node, rules_of_image};
use crate::config::{self, NodeConfig};
use crate::host::random;
use crate::metadata::planners::{RegisterBroker, plan_register_broker, plan_unfence_broker};
use crate::metadata::{
    BrokerEndpoint, BrokerEpoch, BrokerFeature, SUPPORTED_FEATURES, SecurityProtocol,
};
use crate::types::BrokerId;

/// The addresses that clients are told, with ports that were chosen by the system filled in.
pub fn end_points(config: &NodeConfig, bound: &[(String, u16)]) -> Vec<BrokerEndpoint> {
    let advertised = config.listeners.advertised_broker();
    advertised
        .map(|listener| {
            let bound_port = bound.iter().find(|(name, _)| *name == listener.name);
            let port = match (listener.port, bound_port) {
                (0, Some((_, port))) => *port,
                (port, _) => port,
            };
            BrokerEndpoint {
                name: listener.name.as_str().into(),
                host: host(&listener.host).into(),
                port,
                security_protocol: security_protocol(listener.security_protocol),
            }
        })
        .collect()
}

/// An advertised listener without a host stands for the node's own name.
pub fn host(configured: &str) -> String {
    if !configured.is_empty() {
        return configured.to_owned();
    }
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

fn security_protocol(protocol: config::SecurityProtocol) -> SecurityProtocol {
    match protocol {
        config::SecurityProtocol::Plaintext => SecurityProtocol::Plaintext,
        config::SecurityProtocol::Ssl => SecurityProtocol::Ssl,
        config::SecurityProtocol::SaslPlaintext => SecurityProtocol::SaslPlaintext,
        config::SecurityProtocol::SaslSsl => SecurityProtocol::SaslSsl,
    }
}

/// What this incarnation of the broker says of itself. `previous_broker_epoch` is that of the last
/// clean stop, or none after a crash.
pub fn registration(
    node: &Node,
    end_points: Vec<BrokerEndpoint>,
    previous_broker_epoch: BrokerEpoch,
) -> RegisterBroker {
    let features = SUPPORTED_FEATURES.iter().map(|feature| BrokerFeature {
        name: feature.name.into(),
        min_supported_version: feature.min_version,
        max_supported_version: feature.max_version,
    });
    let config = node.config();
    let rack = config.broker.identity.broker_rack.as_deref();
    RegisterBroker {
        broker_id: node.broker_id,
        cluster_id: node.quorum.cluster_id().clone(),
        incarnation_id: random::uuid(),
        end_points,
        features: features.collect(),
        rack: rack.map(Into::into),
        log_dirs: node.partitions.online_directories(),
        previous_broker_epoch,
    }
}

/// Registers the broker of a node that is alone. It is fenced until [`unfence`].
pub async fn register(node: &Node, request: RegisterBroker) -> Result<(), StartError> {
    let config = node.config();
    let registered = node.submit(move |image| {
        let rules = rules_of_image(&config, image);
        plan_register_broker(image, request, &rules)
    });
    registered
        .await?
        .map_err(|error| StartError::Refused(error.to_string()))
}

/// Lets the registered broker lead and be seen by clients.
pub async fn unfence(node: &Node) -> Result<BrokerEpoch, StartError> {
    let broker_id = node.broker_id;
    let epoch = epoch_of(node, broker_id);
    // Partitions are led from the change of the metadata on that follows.
    node.partitions.surroundings().set_broker_epoch(epoch);
    let config = node.config();
    let unfenced = node.submit(move |image| {
        let rules = rules_of_image(&config, image);
        plan_unfence_broker(image, broker_id, epoch, &rules)
    });
    unfenced
        .await?
        .map_err(|error| StartError::Refused(error.to_string()))?;
    Ok(epoch)
}

fn epoch_of(node: &Node, broker_id: BrokerId) -> BrokerEpoch {
    let image = node.image();
    image
        .broker(broker_id)
        .map_or(BrokerEpoch::NONE, |broker| broker.broker_epoch)
}
