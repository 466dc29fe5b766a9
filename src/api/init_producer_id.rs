//! InitProducerId (key 22): an id for an idempotent producer, or the producer of a transactional
//! id, whose open transaction is aborted first.

use kafka_protocol::messages::init_producer_id_request::InitProducerIdRequest;
use kafka_protocol::messages::init_producer_id_response::InitProducerIdResponse;

use super::codec::Handled;
use super::context::Context;
use super::{error, txn_request};
use crate::machine::transaction::{
    InitProducerId, ProducerIdAndEpoch, TransactionApi, error_in_version,
};
use crate::types::{ErrorCode, ProducerEpoch};

pub fn handle(context: Context, request: InitProducerIdRequest) -> Handled<InitProducerIdResponse> {
    let given = txn_request::producer(request.producer_id, request.producer_epoch);
    let expected = ProducerIdAndEpoch::expected(given.producer_id, given.producer_epoch);
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) => return Handled::Ready(answer(&context, Err(error))),
    };
    Handled::later(async move {
        let producer = match request.transactional_id {
            None => idempotent(&context).await,
            Some(id) if id.0.is_empty() => Err(ErrorCode::InvalidRequest),
            Some(id) => {
                let command = InitProducerId {
                    transactional_id: txn_request::transactional_id(&id),
                    transaction_timeout_ms: request.transaction_timeout_ms,
                    expected,
                };
                transactional(&context, command).await
            }
        };
        answer(&context, producer)
    })
}

async fn idempotent(context: &Context) -> Result<ProducerIdAndEpoch, ErrorCode> {
    let next = context.node.producer_ids.next().await;
    let producer_id = next.map_err(|no_id| error::of_producer_id(&no_id))?;
    Ok(ProducerIdAndEpoch {
        producer_id,
        producer_epoch: ProducerEpoch(0),
    })
}

async fn transactional(
    context: &Context,
    command: InitProducerId,
) -> Result<ProducerIdAndEpoch, ErrorCode> {
    // The coordinator cannot wait for an id.
    let available = context.node.producer_ids.available().await;
    available.map_err(|no_id| error::of_producer_id(&no_id))?;
    context.node.transactions.init_producer_id(command).await
}

fn answer(
    context: &Context,
    producer: Result<ProducerIdAndEpoch, ErrorCode>,
) -> InitProducerIdResponse {
    let (error, producer) = match producer {
        Ok(producer) => (ErrorCode::None, producer),
        Err(error) => (error, ProducerIdAndEpoch::NONE),
    };
    let error = error_in_version(TransactionApi::InitProducerId, context.api_version, error);
    InitProducerIdResponse::default()
        .with_error_code(error.code())
        .with_producer_id(producer.producer_id.0.into())
        .with_producer_epoch(producer.producer_epoch.0)
}
