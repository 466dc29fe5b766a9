//! Java's properties format, as `server.properties` is written in.
//!
//! 1. A line ends at `\n`, `\r` or `\r\n`; one whose last backslash is not itself escaped goes on
//!    in the next, whose leading blanks are dropped.
//! 2. A logical line is a comment when its first character past the blanks is `#` or `!`.
//! 3. The name ends at the first unescaped `=`, `:` or blank; then blanks, at most one `=` or
//!    `:`, and blanks again are skipped. The value keeps its trailing blanks.
//! 4. `\t \n \r \f \uXXXX` are escapes; a backslash before any other character is dropped.

use std::sync::Arc;

use super::{ConfigError, Origin};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    pub name: String,
    pub value: String,
    /// Where its name stands.
    pub origin: Origin,
}

/// Every pair of `text` in order, doubles included. `path` is only named.
pub fn parse_properties(path: &str, text: &str) -> Result<Vec<Property>, ConfigError> {
    let path: Arc<str> = path.into();
    let mut found = Vec::new();
    for (line, logical) in logical_lines(text) {
        let origin = Origin::File {
            path: path.clone(),
            line,
        };
        let (name, value) = split(&logical);
        let unescaped = unescape(name).zip(unescape(value));
        let Some((name, value)) = unescaped else {
            return Err(ConfigError::BadEscape { origin });
        };
        found.push(Property {
            name,
            value,
            origin,
        });
    }
    Ok(found)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// The lines that hold a pair, with the number of their first line.
fn logical_lines(text: &str) -> Vec<(u32, String)> {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = (1u32..).zip(unified.split('\n'));
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while goes_on(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        found.push((number, logical));
    }
    found
}

/// An odd number of backslashes at the end: the last one is not escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1
}

/// Name and value, both still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.char_indices().find(|&(_, c)| {
        let ends = !escaped && (is_blank(c) || c == '=' || c == ':');
        escaped = !escaped && c == '\\';
        ends
    });
    let Some((end, _)) = end else {
        return (line, "");
    };
    let rest = line[end..].trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], value.trim_start_matches(is_blank))
}

/// `None` when a `\u` lacks its four digits.
fn unescape(text: &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut buffer = [0; 2];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' {
            chars.next().unwrap_or('\\')
        } else {
            units.extend_from_slice(c.encode_utf16(&mut buffer));
            continue;
        };
        let unit = match c {
            't' => u16::from(b'\t'),
            'n' => u16::from(b'\n'),
            'r' => u16::from(b'\r'),
            'f' => 0x0c,
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
                if digits.len() != 4 || !hexadecimal {
                    return None;
                }
                u16::from_str_radix(&digits, 16).ok()?
            }
            other => {
                units.extend_from_slice(other.encode_utf16(&mut buffer));
                continue;
            }
        };
        units.push(unit);
    }
    // Two escapes may be the halves of one character.
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let properties = parse_properties("f", text).unwrap();
        properties.into_iter().map(|p| (p.name, p.value)).collect()
    }

    fn pair(text: &str) -> (String, String) {
        let mut all = pairs(text);
        assert_eq!(all.len(), 1, "{text}: {all:?}");
        all.remove(0)
    }

    #[test]
    fn separators_and_blanks() {
        for text in ["a=b", "a = b", "a:b", "a b", "  a\t=  b", "a : b", "a\x0cb"] {
            assert_eq!(pair(text), ("a".into(), "b".into()), "{text:?}");
        }
        assert_eq!(pair("a== b"), ("a".into(), "= b".into()));
        assert_eq!(pair("a=b "), ("a".into(), "b ".into()));
        assert_eq!(pair("a"), ("a".into(), "".into()));
        assert_eq!(pair("a="), ("a".into(), "".into()));
        assert_eq!(pair("=b"), ("".into(), "b".into()));
        assert_eq!(pair(r"a\=b\ c=d"), ("a=b c".into(), "d".into()));
    }

    #[test]
    fn comments_and_empty_lines() {
        assert_eq!(
            pairs("# a=b\n! c=d\n\n   \n  # e=f\r\n\rx=#y"),
            [("x".into(), "#y".into())]
        );
        // A comment does not go on.
        assert_eq!(pairs("# a \\\nb=c"), [("b".into(), "c".into())]);
    }

    #[test]
    fn lines_that_go_on() {
        assert_eq!(pair("a=b,\\\n   c,\\\r\n\td"), ("a".into(), "b,c,d".into()));
        assert_eq!(pairs("a=b\\\\\nc=d").len(), 2);
        assert_eq!(pair("a=b\\"), ("a".into(), "b".into()));
        // What looks like a comment is a part of the value here.
        assert_eq!(pair("a=b\\\n#c"), ("a".into(), "b#c".into()));
    }

    #[test]
    fn escapes() {
        assert_eq!(
            pair(r"a=\t\n\r\f\q\\"),
            ("a".into(), "\t\n\r\x0cq\\".into())
        );
        assert_eq!(pair(r"a=\u00e9\uD83D\uDE00"), ("a".into(), "é😀".into()));
        assert_eq!(pair("a=é"), ("a".into(), "é".into()));
        for bad in [r"a=\u12", r"a=\u12g4", r"\u=b"] {
            assert!(parse_properties("f", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_are_counted() {
        let found = parse_properties("f", "#\na=1,\\\n2\nb=3").unwrap();
        let lines: Vec<_> = found.iter().map(|p| p.origin.to_string()).collect();
        assert_eq!(lines, ["f:2", "f:4"]);
    }
}
