//! AllocateProducerIds (key 67): a broker takes a block of producer ids.

use kafka_protocol::messages::allocate_producer_ids_request::AllocateProducerIdsRequest;
use kafka_protocol::messages::allocate_producer_ids_response::AllocateProducerIdsResponse;

use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use crate::metadata::BrokerEpoch;
use crate::metadata::planners::plan_allocate_producer_ids;
use crate::types::{BrokerId, ErrorCode};

pub fn handle(
    context: Context,
    request: AllocateProducerIdsRequest,
) -> Handled<AllocateProducerIdsResponse> {
    Handled::later(async move {
        let broker = BrokerId(request.broker_id.0);
        let epoch = BrokerEpoch(request.broker_epoch);
        let allocated = context
            .node
            .submit(move |image| plan_allocate_producer_ids(image, broker, epoch));
        let failed =
            |error: ErrorCode| AllocateProducerIdsResponse::default().with_error_code(error.code());
        match allocated.await {
            Ok(Ok(block)) => AllocateProducerIdsResponse::default()
                .with_producer_id_start(block.first.0.into())
                .with_producer_id_len(block.count as i32),
            Ok(Err(refused)) => failed(refused.code),
            Err(error) => failed(of_quorum(&error)),
        }
    })
}
