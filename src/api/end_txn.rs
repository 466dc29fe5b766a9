//! EndTxn (key 26): commits or aborts a transaction.

use kafka_protocol::messages::end_txn_request::EndTxnRequest;
use kafka_protocol::messages::end_txn_response::EndTxnResponse;

use super::codec::Handled;
use super::context::Context;
use super::txn_request;
use crate::machine::transaction::{
    EndTxn, ProducerIdAndEpoch, TransactionApi, TransactionResult, TransactionVersion,
    error_in_version,
};
use crate::types::ErrorCode;

/// From this version on the answer names the producer to go on with (KIP-890).
const VERSION_NEXT_PRODUCER: i16 = 5;

pub fn handle(context: Context, request: EndTxnRequest) -> Handled<EndTxnResponse> {
    Handled::later(async move {
        let version = context.api_version;
        let end = EndTxn {
            transactional_id: txn_request::transactional_id(&request.transactional_id),
            producer: txn_request::producer(request.producer_id, request.producer_epoch),
            result: if request.committed {
                TransactionResult::Commit
            } else {
                TransactionResult::Abort
            },
            client_transaction_version: TransactionVersion::of_end_txn(version),
        };
        let (error, producer) = match context.node.transactions.end_txn(end).await {
            Ok(producer) => (ErrorCode::None, producer),
            Err(error) => (error, ProducerIdAndEpoch::NONE),
        };
        let error = error_in_version(TransactionApi::EndTxn, version, error);
        let response = EndTxnResponse::default().with_error_code(error.code());
        if version < VERSION_NEXT_PRODUCER {
            return response;
        }
        response
            .with_producer_id(producer.producer_id.0.into())
            .with_producer_epoch(producer.producer_epoch.0)
    })
}
