//! DescribeCluster (key 60; KIP-700, KIP-919).

use kafka_protocol::messages::BrokerId as WireId;
use kafka_protocol::messages::describe_cluster_request::DescribeClusterRequest;
use kafka_protocol::messages::describe_cluster_response::{
    DescribeClusterBroker, DescribeClusterResponse,
};

use super::codec::Handled;
use super::context::{ConnectionKind, Context};
use super::view;
use crate::peer::Address;
use crate::types::ErrorCode;

const ENDPOINT_BROKERS: i8 = 1;
const ENDPOINT_CONTROLLERS: i8 = 2;
/// From this version on a request says whom it asks for; an older one means the brokers.
const VERSION_ENDPOINT_TYPE: i16 = 1;

pub fn handle(
    context: Context,
    request: DescribeClusterRequest,
) -> Handled<DescribeClusterResponse> {
    let of_controllers = context.connection.kind == ConnectionKind::Controller;
    match request.endpoint_type {
        ENDPOINT_BROKERS if !of_controllers => {}
        ENDPOINT_CONTROLLERS if of_controllers => return Handled::Ready(controllers(&context)),
        ENDPOINT_BROKERS | ENDPOINT_CONTROLLERS => {
            let message = match of_controllers {
                true => {
                    "The request was sent to an endpoint of type CONTROLLER, but we wanted an \
                         endpoint of type BROKER"
                }
                false => {
                    "The request was sent to an endpoint of type BROKER, but we wanted an \
                          endpoint of type CONTROLLER"
                }
            };
            let error = match context.api_version {
                ..VERSION_ENDPOINT_TYPE => ErrorCode::InvalidRequest,
                _ => ErrorCode::MismatchedEndpointType,
            };
            return Handled::Ready(refused(error, message));
        }
        other => {
            let message = format!("Unsupported endpoint type {other}");
            return Handled::Ready(refused(ErrorCode::UnsupportedEndpointType, &message));
        }
    }
    let image = context.node.image();
    let include_fenced = request.include_fenced_brokers;
    let (node, connection) = (&context.node, &context.connection);
    let brokers = view::brokers(node, connection, &image, include_fenced).map(|broker| {
        DescribeClusterBroker::default()
            .with_broker_id(broker.registration.broker_id.0.into())
            .with_host(broker.host)
            .with_port(broker.port)
            .with_rack(broker.rack)
            .with_is_fenced(broker.registration.fenced)
    });
    let brokers: Vec<DescribeClusterBroker> = brokers.collect();
    let live = brokers.iter().find(|broker| !broker.is_fenced);
    let controller = live.map_or(WireId(-1), |broker| broker.broker_id);
    let operations = if request.include_cluster_authorized_operations {
        view::CLUSTER_OPERATIONS
    } else {
        view::OPERATIONS_NOT_ASKED
    };
    let cluster_id = image
        .cluster_id()
        .map(|id| view::text(id))
        .unwrap_or_default();
    Handled::Ready(
        DescribeClusterResponse::default()
            .with_cluster_id(cluster_id)
            .with_controller_id(controller)
            .with_brokers(brokers)
            .with_cluster_authorized_operations(operations),
    )
}

/// The controllers, for a client of a controller's listener.
fn controllers(context: &Context) -> DescribeClusterResponse {
    let quorum = &context.node.quorum;
    let voters = quorum.voters().into_iter();
    let controllers = voters.filter_map(|voter| {
        let address = Address::parse(&voter.address).ok()?;
        Some(
            DescribeClusterBroker::default()
                .with_broker_id(voter.id.0.into())
                .with_host(view::text(&address.host))
                .with_port(address.port.into()),
        )
    });
    let leader = quorum.leader().map_or(-1, |leader| leader.0);
    DescribeClusterResponse::default()
        .with_endpoint_type(ENDPOINT_CONTROLLERS)
        .with_cluster_id(view::text(quorum.cluster_id()))
        .with_controller_id(WireId(leader))
        .with_brokers(controllers.collect())
        .with_cluster_authorized_operations(view::OPERATIONS_NOT_ASKED)
}

fn refused(error: ErrorCode, message: &str) -> DescribeClusterResponse {
    DescribeClusterResponse::default()
        .with_error_code(error.code())
        .with_error_message(Some(view::text(message)))
}
