//! SaslHandshake (key 17). No listener has SASL yet: there is nothing to shake hands on.

use kafka_protocol::messages::sasl_handshake_request::SaslHandshakeRequest;
use kafka_protocol::messages::sasl_handshake_response::SaslHandshakeResponse;

use super::codec::Handled;
use super::context::Context;
use crate::types::ErrorCode;

pub fn handle(_: Context, _: SaslHandshakeRequest) -> Handled<SaslHandshakeResponse> {
    let error = ErrorCode::IllegalSaslState.code();
    Handled::Ready(SaslHandshakeResponse::default().with_error_code(error))
}
