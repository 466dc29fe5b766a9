//! ListTransactions (key 66): the transactional ids that this broker coordinates.

use std::sync::Arc;

use kafka_protocol::messages::list_transactions_request::ListTransactionsRequest;
use kafka_protocol::messages::list_transactions_response::{
    ListTransactionsResponse, TransactionState,
};
use kafka_protocol::protocol::StrBytes;
use regex::Regex;

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::coordinator::transaction::ListTransactions;
use crate::machine::transaction::known_states;
use crate::types::{ErrorCode, ProducerId};

pub fn handle(
    context: Context,
    request: ListTransactionsRequest,
) -> Handled<ListTransactionsResponse> {
    let filters = match filters(&request) {
        Ok(filters) => filters,
        Err(error) => {
            let failed = ListTransactionsResponse::default().with_error_code(error.code());
            return Handled::Ready(failed);
        }
    };
    Handled::later(async move {
        match context.node.transactions.list(filters).await {
            Ok(listings) => {
                let unknown = unknown_states(&request);
                let states = listings.iter().map(|listing| {
                    TransactionState::default()
                        .with_transactional_id(view::text(&listing.transactional_id).into())
                        .with_producer_id(listing.producer_id.0.into())
                        .with_transaction_state(view::text(listing.state.name()))
                });
                ListTransactionsResponse::default()
                    .with_unknown_state_filters(unknown)
                    .with_transaction_states(states.collect())
            }
            Err(error) => ListTransactionsResponse::default().with_error_code(error.code()),
        }
    })
}

/// In the order of the request, each once.
fn unknown_states(request: &ListTransactionsRequest) -> Vec<StrBytes> {
    let names = request.state_filters.iter();
    let (_, mut unknown) = known_states(names.clone().map(|name| name.as_str()));
    names
        .filter(|name| unknown.remove(name.as_str()))
        .cloned()
        .collect()
}

fn filters(request: &ListTransactionsRequest) -> Result<ListTransactions, ErrorCode> {
    let pattern = request.transactional_id_pattern.as_deref();
    let pattern = pattern.filter(|pattern| !pattern.is_empty());
    let transactional_id = match pattern {
        None => None,
        Some(pattern) => {
            // The whole id has to match.
            let regex = Regex::new(&format!("^(?:{pattern})$"));
            let regex = regex.map_err(|_| ErrorCode::InvalidRegularExpression)?;
            let matches = move |id: &str| regex.is_match(id);
            Some(Arc::new(matches) as Arc<dyn Fn(&str) -> bool + Send + Sync>)
        }
    };
    let producer_ids = request.producer_id_filters.iter();
    Ok(ListTransactions {
        states: request
            .state_filters
            .iter()
            .map(|s| s.to_string())
            .collect(),
        producer_ids: producer_ids.map(|id| ProducerId(id.0)).collect(),
        duration_ms: Some(request.duration_filter),
        transactional_id,
    })
}
