//! ApiVersions (key 18): what this broker serves (KIP-35, KIP-511, KIP-584).

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_request::ApiVersionsRequest;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::protocol::StrBytes;

use super::answer::{Answer, CloseReason, Frame, Reply};
use super::codec::Handled;
use super::context::Context;
use super::{API_VERSIONS, APIS, find, view};
use crate::metadata::SUPPORTED_FEATURES;
use crate::types::ErrorCode;

/// From this version on a client names its software.
const VERSION_SOFTWARE: i16 = 3;
/// Up to this version a feature whose lowest level is 0 is hidden: old clients take 0 for an error.
const VERSION_HIDES_ZERO: i16 = 3;

pub fn handle(context: Context, request: ApiVersionsRequest) -> Handled<ApiVersionsResponse> {
    if context.api_version >= VERSION_SOFTWARE {
        let name = request.client_software_name.as_str();
        let version = request.client_software_version.as_str();
        if !is_software_word(name) || !is_software_word(version) {
            let error = ErrorCode::InvalidRequest.code();
            return Handled::Ready(ApiVersionsResponse::default().with_error_code(error));
        }
        let _ = context.connection.software.set((name.to_owned(), version.to_owned()));
        tracing::debug!(peer = %context.connection.peer, name, version, "client software");
    }
    Handled::Ready(answer(&context))
}

fn answer(context: &Context) -> ApiVersionsResponse {
    let api_keys = APIS.iter().map(|row| {
        let listed = ApiVersion::default().with_api_key(row.key);
        listed.with_min_version(row.listed_min).with_max_version(row.max)
    });
    let answer = ApiVersionsResponse::default().with_api_keys(api_keys.collect());
    if context.api_version < VERSION_SOFTWARE {
        return answer;
    }
    let hides_zero = context.api_version <= VERSION_HIDES_ZERO;
    let image = context.node.image();
    let supported = SUPPORTED_FEATURES.iter().filter(|f| f.min_version > 0 || !hides_zero);
    let supported = supported.map(|feature| {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_static_str(feature.name))
            .with_min_version(feature.min_version)
            .with_max_version(feature.max_version)
    });
    let finalized = image.features().iter().map(|(name, level)| {
        let feature = FinalizedFeatureKey::default().with_name(view::text(name));
        feature.with_min_version_level(*level).with_max_version_level(*level)
    });
    answer
        .with_supported_features(supported.collect())
        .with_finalized_features(finalized.collect())
        .with_finalized_features_epoch(image.offset().0)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`
fn is_software_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    let inner = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-' || *b == b'.';
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inner)
}

/// The answer to a version that is not served: in the layout of v0, which every client can read,
/// with the versions of this API only, so that the client can try again.
pub fn unsupported(frame: &[u8]) -> Result<Answer, CloseReason> {
    let correlation_id = frame.get(4..8).ok_or(CloseReason::ShortFrame { len: frame.len() })?;
    let row = find(API_VERSIONS).expect("the table has ApiVersions");
    let mut buffer = BytesMut::with_capacity(24);
    buffer.put_i32(4 + 2 + 4 + 6);
    buffer.put_slice(correlation_id);
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
