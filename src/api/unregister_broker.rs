//! UnregisterBroker (key 64): forgets a broker that will not come back.

use kafka_protocol::messages::unregister_broker_request::UnregisterBrokerRequest;
use kafka_protocol::messages::unregister_broker_response::UnregisterBrokerResponse;

use super::codec::Handled;
use super::context::Context;
use super::error::of_quorum;
use super::{rules, view};
use crate::metadata::planners::plan_unregister_broker;
use crate::types::BrokerId;

pub fn handle(
    context: Context,
    request: UnregisterBrokerRequest,
) -> Handled<UnregisterBrokerResponse> {
    Handled::later(async move {
        let broker = BrokerId(request.broker_id.0);
        let config = context.node.config();
        let planned = context.node.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_unregister_broker(image, broker, &rules)
        });
        let answer = UnregisterBrokerResponse::default();
        match planned.await {
            Ok(Ok(())) => answer.with_error_message(Some(view::text(""))),
            Ok(Err(refused)) => answer
                .with_error_code(refused.code.code())
                .with_error_message(refused.message.as_deref().map(view::text)),
            Err(error) => {
                let code = of_quorum(&error);
                let message = Some(view::text(&error.to_string()));
                answer
                    .with_error_code(code.code())
                    .with_error_message(message)
            }
        }
    })
}
