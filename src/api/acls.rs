//! What the APIs of access control lists answer where there is no authorizer (Kafka's `AclApis`):
//! a node that would need one does not start.

use kafka_protocol::protocol::StrBytes;

use super::answer::CloseReason;
use super::codec::{Handled, Outcome};
use super::context::Context;
use crate::types::ErrorCode;

pub const NO_AUTHORIZER: ErrorCode = ErrorCode::SecurityDisabled;

/// The code of an "unknown" resource type, pattern type, operation or permission.
const UNKNOWN: i8 = 0;

pub fn refusal() -> Option<StrBytes> {
    Some(StrBytes::from_static_str("No Authorizer is configured."))
}

/// Answers, unless a request has one of those codes: that ends the connection, as in Kafka, whose
/// request classes do not take it.
pub fn unless_unknown<R>(
    context: &Context,
    mut codes: impl Iterator<Item = i8>,
    answer: impl FnOnce() -> R,
) -> Handled<R> {
    if codes.any(|code| code == UNKNOWN) {
        return Handled::Done(Outcome::Close(CloseReason::Malformed {
            api: context.api.name,
            version: context.api_version,
            reason: "a resource type, pattern type, operation or permission is UNKNOWN".into(),
        }));
    }
    Handled::Ready(answer())
}
