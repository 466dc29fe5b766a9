//! A line of text to a record (`LineMessageReader`).
//!
//! ```text
//! [headers headers.delimiter] [key key.separator] value
//! headers = name headers.key.separator value (headers.separator ...)
//! ```

use bytes::Bytes;

use super::produce::Outgoing;
use super::settings::Settings;

/// Why a line is no record.
#[derive(Debug, PartialEq, Eq)]
pub struct LineError(pub String);

pub struct LineReader {
    parse_key: bool,
    parse_headers: bool,
    ignore_error: bool,
    key_separator: String,
    headers_delimiter: String,
    headers_separator: String,
    headers_key_separator: String,
    null_marker: Option<String>,
    line_number: u64,
}

impl LineReader {
    pub fn new(properties: &Settings) -> LineReader {
        let text = |name: &str, default: &str| properties.get(name).unwrap_or(default).to_owned();
        LineReader {
            parse_key: properties.flag("parse.key", false),
            parse_headers: properties.flag("parse.headers", false),
            ignore_error: properties.flag("ignore.error", false),
            key_separator: text("key.separator", "\t"),
            headers_delimiter: text("headers.delimiter", "\t"),
            headers_separator: text("headers.separator", ","),
            headers_key_separator: text("headers.key.separator", ":"),
            null_marker: properties.get("null.marker").map(str::to_owned),
            line_number: 0,
        }
    }

    /// The record of the next line, its topic left empty.
    pub fn parse(&mut self, line: &[u8]) -> Result<Outgoing, LineError> {
        self.line_number += 1;
        let line = String::from_utf8_lossy(line);
        let mut rest: &str = &line;
        let mut record = Outgoing::default();
        if self.parse_headers {
            let delimiter = &self.headers_delimiter;
            match self.cut(&line, rest, delimiter, "headers delimiter")? {
                Some((headers, after)) => {
                    record.headers = self.headers(headers)?;
                    rest = after;
                }
                None => {
                    record.value = self.field(rest);
                    return Ok(record);
                }
            }
        }
        if self.parse_key
            && let Some((key, after)) =
                self.cut(&line, rest, &self.key_separator, "key separator")?
        {
            record.key = self.field(key);
            rest = after;
        }
        record.value = self.field(rest);
        Ok(record)
    }

    fn cut<'l>(
        &self,
        line: &str,
        rest: &'l str,
        separator: &str,
        name: &str,
    ) -> Result<Option<(&'l str, &'l str)>, LineError> {
        match rest.split_once(separator) {
            Some(parts) => Ok(Some(parts)),
            None if self.ignore_error => Ok(None),
            None => Err(LineError(format!(
                "No {name} found on line number {}: '{line}'",
                self.line_number
            ))),
        }
    }

    fn field(&self, text: &str) -> Option<Bytes> {
        match self.null_marker.as_deref() == Some(text) {
            true => None,
            false => Some(Bytes::copy_from_slice(text.as_bytes())),
        }
    }

    fn headers(&self, text: &str) -> Result<Vec<(Bytes, Option<Bytes>)>, LineError> {
        if self.null_marker.as_deref() == Some(text) {
            return Ok(Vec::new());
        }
        let mut headers = Vec::new();
        for pair in text.split(self.headers_separator.as_str()) {
            let (name, value) = match pair.split_once(self.headers_key_separator.as_str()) {
                Some((name, value)) => (name, self.field(value)),
                None if self.ignore_error => (pair, None),
                None => {
                    return Err(LineError(format!(
                        "No header key separator found in pair '{pair}' on line number {}",
                        self.line_number
                    )));
                }
            };
            if self.null_marker.as_deref() == Some(name) {
                return Err(LineError(format!(
                    "Header keys should not be equal to the null marker '{name}' as they can't be \
                     null"
                )));
            }
            headers.push((Bytes::copy_from_slice(name.as_bytes()), value));
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(properties: &[(&str, &str)]) -> LineReader {
        let mut settings = Settings::default();
        properties
            .iter()
            .for_each(|(name, value)| settings.set(name, value));
        LineReader::new(&settings)
    }

    #[test]
    fn parts_of_a_line() {
        let mut plain = reader(&[]);
        assert_eq!(plain.parse(b"a\tb").unwrap().value.unwrap(), "a\tb");
        let keyed = [
            ("parse.key", "true"),
            ("key.separator", ":"),
            ("null.marker", "NULL"),
        ];
        let record = reader(&keyed).parse(b"k:v:w").unwrap();
        assert_eq!(
            (record.key.unwrap(), record.value.unwrap()),
            ("k".into(), "v:w".into())
        );
        let record = reader(&keyed).parse(b"NULL:NULL").unwrap();
        assert_eq!((record.key, record.value), (None, None));
        let both = [("parse.key", "true"), ("parse.headers", "true")];
        let record = reader(&both).parse(b"a:1,b:2\tk\tv").unwrap();
        assert_eq!(record.headers.len(), 2);
        assert_eq!(record.headers[1], ("b".into(), Some("2".into())));
    }

    #[test]
    fn a_line_without_its_parts_is_refused() {
        let mut keyed = reader(&[("parse.key", "true")]);
        let error = keyed.parse(b"nokey").unwrap_err();
        assert_eq!(error.0, "No key separator found on line number 1: 'nokey'");
        let mut lenient = reader(&[("parse.key", "true"), ("ignore.error", "true")]);
        assert_eq!(lenient.parse(b"nokey").unwrap().value.unwrap(), "nokey");
    }
}
