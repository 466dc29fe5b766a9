//! ApiVersions (key 18): what this broker serves (KIP-35, KIP-511, KIP-584).

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::protocol::StrBytes;

use super::answer::{Answer, CloseReason, Frame, Reply};
use super::codec::{AnswerHeader, Handled};
use super::context::{ConnectionKind, Context};
use super::{API_VERSIONS, APIS, find, view};
use crate::metadata::SUPPORTED_FEATURES;
use crate::peer::PRIVATE_APIS;
use crate::types::ErrorCode;
use crate::wire::{RequestHeader, Value};

/// From this version on a client names its software.
const VERSION_SOFTWARE: i16 = 3;
/// The newest version whose answer the codec has; later ones look the same.
const VERSION_OF_NEWEST_LAYOUT: i16 = 4;
const NO_NODE_ID: i64 = -1;
/// Up to this version a feature whose lowest level is 0 is hidden: old clients take 0 for an error.
const VERSION_HIDES_ZERO: i16 = 3;

pub fn handle(context: Context, request: ApiVersionsRequest) -> Handled<ApiVersionsResponse> {
    if context.api_version >= VERSION_SOFTWARE {
        let name = request.client_software_name.as_str();
        let version = request.client_software_version.as_str();
        if !is_software_word(name) || !is_software_word(version) {
            return Handled::Ready(refused(ErrorCode::InvalidRequest));
        }
        note_software(&context, name, version);
    }
    Handled::Ready(answer(&context))
}

/// From v5 on a client may say which broker of which cluster it takes this one for. The answer is
/// laid out as that of v4.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    let answer = match check_values(&context, &request) {
        Ok(()) => answer(&context),
        Err(error) => refused(error),
    };
    let header = AnswerHeader::at(&context, VERSION_OF_NEWEST_LAYOUT);
    Handled::Done(header.outcome(&answer))
}

fn check_values(context: &Context, request: &Value) -> Result<(), ErrorCode> {
    let text = |name: &str| request.get(name).and_then(Value::as_text);
    let name = text("client_software_name").unwrap_or_default();
    let version = text("client_software_version").unwrap_or_default();
    if !is_software_word(name) || !is_software_word(version) {
        return Err(ErrorCode::InvalidRequest);
    }
    let cluster_id = text("cluster_id");
    let node_id = request
        .get("node_id")
        .and_then(Value::as_integer)
        .unwrap_or(NO_NODE_ID);
    match (cluster_id, node_id) {
        (None, NO_NODE_ID) => {}
        (None, _) | (_, NO_NODE_ID) => return Err(ErrorCode::InvalidRequest),
        (Some(cluster_id), node_id) => {
            let this_cluster = context
                .node
                .image()
                .cluster_id()
                .is_some_and(|id| **id == *cluster_id);
            if !this_cluster || node_id != i64::from(context.node.broker_id.0) {
                return Err(ErrorCode::RebootstrapRequired);
            }
        }
    }
    note_software(context, name, version);
    Ok(())
}

fn refused(error: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(error.code())
}

fn note_software(context: &Context, name: &str, version: &str) {
    let _ = context
        .connection
        .software
        .set((name.to_owned(), version.to_owned()));
    tracing::debug!(peer = %context.connection.peer, name, version, "client software");
}

fn answer(context: &Context) -> ApiVersionsResponse {
    let kind = context.connection.kind;
    let listed = |key, min, max| {
        let listed = ApiVersion::default().with_api_key(key);
        listed.with_min_version(min).with_max_version(max)
    };
    let rows = APIS.iter().filter(|row| row.is_answered_on(kind));
    let mut api_keys: Vec<_> = rows
        .map(|row| listed(row.key, row.listed_min, row.max))
        .collect();
    if kind != ConnectionKind::Broker {
        let own = PRIVATE_APIS.iter();
        api_keys.extend(own.map(|api| listed(api.key, api.min, api.max)));
    }
    let answer = ApiVersionsResponse::default().with_api_keys(api_keys);
    if context.api_version < VERSION_SOFTWARE {
        return answer;
    }
    let hides_zero = context.api_version <= VERSION_HIDES_ZERO;
    let image = context.node.image();
    let supported = SUPPORTED_FEATURES
        .iter()
        .filter(|f| f.min_version > 0 || !hides_zero);
    let supported = supported.map(|feature| {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_static_str(feature.name))
            .with_min_version(feature.min_version)
            .with_max_version(feature.max_version)
    });
    let finalized = image.features().iter().map(|(name, level)| {
        let feature = FinalizedFeatureKey::default().with_name(view::text(name));
        feature
            .with_min_version_level(*level)
            .with_max_version_level(*level)
    });
    answer
        .with_supported_features(supported.collect())
        .with_finalized_features(finalized.collect())
        .with_finalized_features_epoch(image.offset().0)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`
fn is_software_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let inner = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'.';
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inner)
}

/// The answer to a version that is not served: in the layout of v0, which every client can read,
/// with the versions of this API only, so that the client can try again. Whatever the body says;
/// but the header must be whole.
pub fn unsupported(frame: &Bytes) -> Result<Answer, CloseReason> {
    let row = find(API_VERSIONS).expect("the table has ApiVersions");
    let header = RequestHeader::read(frame);
    let (header, _) = header.map_err(|malformed| CloseReason::Malformed {
        api: row.name,
        version: frame
            .get(2..4)
            .map_or(-1, |bytes| i16::from_be_bytes([bytes[0], bytes[1]])),
        reason: malformed.to_string(),
    })?;
    let mut buffer = BytesMut::with_capacity(24);
    buffer.put_i32(4 + 2 + 4 + 6);
    buffer.put_i32(header.correlation_id);
    buffer.put_i16(ErrorCode::UnsupportedVersion.code());
    buffer.put_i32(1);
    buffer.put_i16(row.key);
    buffer.put_i16(row.min);
    buffer.put_i16(row.max);
    let bytes: Bytes = buffer.freeze();
    Ok(Answer::Ready(Reply::Send(Frame::from(bytes))))
}

#[cfg(test)]
mod tests {
    use super::is_software_word;

    #[test]
    fn software_words_are_kafkas() {
        for good in ["a", "apache-kafka-java", "4.4.0", "A1", "x..y"] {
            assert!(is_software_word(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".a", "a b", "a_b", "é"] {
            assert!(!is_software_word(bad), "{bad}");
        }
    }
}
