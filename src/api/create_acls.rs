//! CreateAcls (key 30).

use kafka_protocol::messages::create_acls_request::{AclCreation, CreateAclsRequest};
use kafka_protocol::messages::create_acls_response::{AclCreationResult, CreateAclsResponse};

use super::acls::{NO_AUTHORIZER, refusal, unless_unknown};
use super::codec::Handled;
use super::context::Context;

pub fn handle(context: Context, request: CreateAclsRequest) -> Handled<CreateAclsResponse> {
    let codes = |acl: &AclCreation| {
        [
            acl.resource_type,
            acl.resource_pattern_type,
            acl.operation,
            acl.permission_type,
        ]
    };
    unless_unknown(&context, request.creations.iter().flat_map(codes), || {
        let refused = AclCreationResult::default()
            .with_error_code(NO_AUTHORIZER.code())
            .with_error_message(refusal());
        CreateAclsResponse::default().with_results(vec![refused; request.creations.len()])
    })
}
