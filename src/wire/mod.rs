//! The wire format, PURE: frames, headers, and the layout of every message as a table.
//!
//! ```text
//! frame    = length:int32 request | length:int32 response    (the length is not in `frame` here)
//! request  = header body      header v1 = api_key:int16 api_version:int16 correlation_id:int32
//!                                         client_id:nullable_string
//!                             header v2 = header v1, tagged fields
//! response = header body      header v0 = correlation_id:int32
//!                             header v1 = header v0, tagged fields
//! ```
//!
//! 1. A request passes [`conform`] before anything decodes it: from then on every length in it is
//!    true, and what Kafka reads leniently stands in its plain form.
//! 2. The layouts are facts (`layouts.txt`, `record_layouts.txt`); nothing here knows one API from
//!    another, but for the header rules of ApiVersions.

mod codec_version;
mod conform;
mod error_codes;
mod header;
mod layout;
mod malformed;
mod parse;
mod reader;
mod record_layout;
mod value;
mod value_decode;
mod value_encode;

pub use codec_version::codec_version;
pub use conform::{ELEMENTS_MAX, conform, conform_response, has_few_elements};
pub use error_codes::error_codes;
pub use header::{RequestHeader, response_header_bytes, write_response_header};
pub use layout::{Api, Kind, Length, Struct, api, api_by_name, apis};
pub use malformed::{Malformed, Reason};
pub use record_layout::{RecordHome, RecordKind, record_kind, record_kind_by_name};
pub use value::Value;
pub use value_decode::{decode_record, decode_request, decode_request_body, decode_response};
pub use value_encode::{Unencodable, encode_request, encode_response};

/// ApiVersions: the API that is asked before the versions are agreed on.
pub const API_VERSIONS: i16 = 18;

#[cfg(test)]
mod conform_tests;
