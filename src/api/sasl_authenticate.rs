//! SaslAuthenticate (key 36). No listener has SASL yet: nobody is to authenticate.

use kafka_protocol::messages::sasl_authenticate_request::SaslAuthenticateRequest;
use kafka_protocol::messages::sasl_authenticate_response::SaslAuthenticateResponse;

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::types::ErrorCode;

pub fn handle(_: Context, _: SaslAuthenticateRequest) -> Handled<SaslAuthenticateResponse> {
    let message = "This listener does not authenticate with SASL.";
    Handled::Ready(
        SaslAuthenticateResponse::default()
            .with_error_code(ErrorCode::IllegalSaslState.code())
            .with_error_message(Some(view::text(message))),
    )
}
