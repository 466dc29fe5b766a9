//! RE2's syntax, which subscriptions use in Kafka (RE2/J, Perl mode), in that of the `regex` crate.
//!
//! The two are close; what differs is written anew, and what only the crate knows is refused:
//!
//! ```text
//!   \Q...\E, \012, \p{^L}, \_       become plain characters, \x{a}, \P{L}, plain characters
//!   a{  a{,3}  a{1                  a `{` that begins no repetition is a character
//!   [a&&b] [[x]] [\d-z]             within brackets there are no brackets and no operations
//!   a++ x{1001} (?x) [[:foo:]]      errors
//!   \u0041 \p{Alphabetic} \b{start} errors, or characters
//! ```

use std::fmt::Write;

const REPEAT_MAX: u32 = 1000;

const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The pattern for the `regex` crate, or why it is none. What is wrong in both is left to the
/// crate.
pub(super) fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut translation = Translation {
        input: pattern.chars().collect(),
        at: 0,
        output: String::with_capacity(pattern.len() + 8),
    };
    translation.run()?;
    Ok(translation.output)
}

struct Translation {
    input: Vec<char>,
    at: usize,
    output: String,
}

/// What a backslash and what follows it stand for.
enum Escape {
    Char(char),
    /// A class, or an assertion, as the crate writes it.
    Other(String),
}

impl Translation {
    fn run(&mut self) -> Result<(), &'static str> {
        let mut follows_repetition = false;
        while let Some(c) = self.peek() {
            let repeats = match c {
                '*' | '+' | '?' => Some(String::from(self.take(c))),
                '{' => self.repetition()?,
                _ => None,
            };
            if let Some(repeats) = repeats {
                if follows_repetition {
                    return Err("invalid nested repetition operator");
                }
                self.output.push_str(&repeats);
                if self.eat('?') {
                    self.output.push('?');
                }
                follows_repetition = true;
                continue;
            }
            follows_repetition = false;
            self.atom(c)?;
        }
        Ok(())
    }

    fn atom(&mut self, c: char) -> Result<(), &'static str> {
        match c {
            '\\' if self.eat_text("\\Q") => self.quoted(),
            '\\' => match self.escape()? {
                Escape::Char(c) => self.literal(c),
                Escape::Other(text) => self.output.push_str(&text),
            },
            '[' => self.class()?,
            '(' => self.group()?,
            '^' | '$' | '.' | '|' | ')' => {
                self.at += 1;
                self.output.push(c);
            }
            _ => {
                self.at += 1;
                self.literal(c);
            }
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    fn take(&mut self, c: char) -> char {
        self.at += 1;
        c
    }

    fn eat(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn eat_text(&mut self, wanted: &str) -> bool {
        let rest = &self.input[self.at..];
        let is_there =
            wanted.chars().count() <= rest.len() && wanted.chars().zip(rest).all(|(a, b)| a == *b);
        if is_there {
            self.at += wanted.chars().count();
        }
        is_there
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.output
            .push_str(&regex::escape(c.encode_utf8(&mut buffer)));
    }

    fn quoted(&mut self) {
        while self.at < self.input.len() && !self.eat_text("\\E") {
            let c = self.input[self.at];
            self.at += 1;
            self.literal(c);
        }
    }

    /// `{n}`, `{n,}` or `{n,m}` from here on; `None`: the brace is a character.
    fn repetition(&mut self) -> Result<Option<String>, &'static str> {
        let Some(len) = self.input[self.at..].iter().position(|c| *c == '}') else {
            return Ok(None);
        };
        let inside: String = self.input[self.at + 1..self.at + len].iter().collect();
        let (min, max) = inside.split_once(',').unwrap_or((&inside, &inside));
        let is_number = |text: &str| {
            let is_plain = text.len() == 1 || !text.starts_with('0');
            !text.is_empty() && is_plain && text.bytes().all(|b| b.is_ascii_digit())
        };
        if !is_number(min) || !(max.is_empty() || is_number(max)) {
            return Ok(None);
        }
        let number = |text: &str| text.parse().unwrap_or(u32::MAX);
        let (min, max) = (number(min), (!max.is_empty()).then(|| number(max)));
        if min > REPEAT_MAX || max.is_some_and(|max| max > REPEAT_MAX || max < min) {
            return Err("invalid repeat count");
        }
        self.at += len + 1;
        Ok(Some(match max {
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        }))
    }

    /// `(`, with what may follow its question mark.
    fn group(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        self.output.push('(');
        if !self.eat('?') {
            return Ok(());
        }
        self.output.push('?');
        while let Some(c) = self.peek() {
            self.at += 1;
            self.output.push(c);
            match c {
                'i' | 'm' | 's' | 'U' | '-' => {}
                // The crate checks names.
                ':' | ')' | 'P' | '<' => return Ok(()),
                _ => return Err("invalid or unsupported Perl syntax"),
            }
        }
        Err("missing closing )")
    }

    fn escape(&mut self) -> Result<Escape, &'static str> {
        self.at += 1;
        let c = self.peek().ok_or("trailing \\ at end of expression")?;
        self.at += 1;
        Ok(match c {
            'a' => Escape::Char('\x07'),
            'f' => Escape::Char('\x0c'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\x0b'),
            '1'..='7' if !matches!(self.peek(), Some('0'..='7')) => {
                return Err("invalid escape sequence");
            }
            '0'..='7' => Escape::Char(self.octal(c)),
            'x' => Escape::Char(self.hexadecimal()?),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'b' | 'B' | 'z' => {
                Escape::Other(format!("\\{c}"))
            }
            'p' | 'P' => Escape::Other(self.property(c == 'P')?),
            c if c.is_ascii_alphanumeric() => return Err("invalid escape sequence"),
            c => Escape::Char(c),
        })
    }

    fn octal(&mut self, first: char) -> char {
        let mut value = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                break;
            };
            self.at += 1;
            value = value * 8 + digit;
        }
        char::from_u32(value).unwrap_or_default()
    }

    /// `x7F` or `x{10FFFF}`, after the x.
    fn hexadecimal(&mut self) -> Result<char, &'static str> {
        const INVALID: &str = "invalid escape sequence";
        let is_braced = self.eat('{');
        let mut value = 0u32;
        let mut digits = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            self.at += 1;
            value = value.saturating_mul(16).saturating_add(digit);
            digits += 1;
            if !is_braced && digits == 2 {
                break;
            }
        }
        let is_whole = match is_braced {
            true => digits > 0 && self.eat('}'),
            false => digits == 2,
        };
        let value = char::from_u32(value).filter(|_| is_whole);
        value.ok_or(INVALID)
    }

    /// A general category or a script, after the p.
    fn property(&mut self, mut is_negated: bool) -> Result<String, &'static str> {
        const INVALID: &str = "invalid character class range";
        let mut name = String::new();
        if self.eat('{') {
            loop {
                match self.peek().ok_or(INVALID)? {
                    '}' => break,
                    c => name.push(self.take(c)),
                }
            }
            self.at += 1;
        } else {
            let c = self.peek().ok_or(INVALID)?;
            name.push(self.take(c));
        }
        if let Some(rest) = name.strip_prefix('^') {
            is_negated = !is_negated;
            name = rest.to_owned();
        }
        let is_word = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        let is_capital = name.starts_with(|c: char| c.is_ascii_uppercase());
        // The crate would take `IsGreek` for `Greek`.
        if !is_word || !is_capital || name.starts_with("Is") {
            return Err(INVALID);
        }
        let letter = if is_negated { 'P' } else { 'p' };
        Ok(match name.len() {
            _ if name == "Any" => format!("\\{letter}{{Any}}"),
            1 | 2 => format!("\\{letter}{{gc={name}}}"),
            _ => format!("\\{letter}{{Script={name}}}"),
        })
    }

    fn class(&mut self) -> Result<(), &'static str> {
        const MISSING: &str = "missing closing ]";
        self.at += 1;
        self.output.push('[');
        if self.eat('^') {
            self.output.push('^');
        }
        let mut is_first = true;
        loop {
            let c = self.peek().ok_or(MISSING)?;
            if c == ']' && !is_first {
                self.at += 1;
                self.output.push(']');
                return Ok(());
            }
            is_first = false;
            if self.posix_class()? {
                continue;
            }
            let low = match self.class_char()? {
                Escape::Char(low) => low,
                Escape::Other(text) => {
                    self.output.push_str(&text);
                    continue;
                }
            };
            let mut high = low;
            let is_range = self.peek() == Some('-')
                && self.input.get(self.at + 1).is_some_and(|next| *next != ']');
            if is_range {
                self.at += 1;
                high = match self.class_char()? {
                    Escape::Char(high) => high,
                    Escape::Other(_) => return Err("invalid character class range"),
                };
            }
            if high < low {
                return Err("invalid character class range");
            }
            let (low, high) = (u32::from(low), u32::from(high));
            let _ = write!(self.output, "\\x{{{low:x}}}-\\x{{{high:x}}}");
        }
    }

    /// `[:alpha:]` or `[:^alpha:]`, if one begins here.
    fn posix_class(&mut self) -> Result<bool, &'static str> {
        if !self.input[self.at..].starts_with(&['[', ':']) {
            return Ok(false);
        }
        let rest: String = self.input[self.at + 2..].iter().collect();
        let Some((name, _)) = rest.split_once(":]") else {
            return Ok(false);
        };
        if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err("invalid character class range");
        }
        let _ = write!(self.output, "[:{name}:]");
        self.at += name.chars().count() + 4;
        Ok(true)
    }

    fn class_char(&mut self) -> Result<Escape, &'static str> {
        let c = self.peek().ok_or("missing closing ]")?;
        if c != '\\' {
            return Ok(Escape::Char(self.take(c)));
        }
        match self.escape()? {
            // Assertions are none of characters.
            Escape::Other(text) if ["\\A", "\\b", "\\B", "\\z"].contains(&text.as_str()) => {
                Err("invalid escape sequence")
            }
            escape => Ok(escape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::subscription::compile;

    fn matches(pattern: &str, name: &str) -> bool {
        let regex = compile(pattern).unwrap_or_else(|refused| panic!("{}", refused.message));
        regex.is_match(name)
    }

    /// Each was asked of Apache Kafka 4.4.0, which takes it.
    #[test]
    fn what_kafka_takes() {
        for pattern in [
            r"\Qa.b\E",
            r"^topic-\Qx.y\E$",
            r"\Qa",
            "a{",
            "a{1",
            "a{,3}",
            "a{,}",
            "{",
            r"\0",
            r"\07",
            r"\012",
            r"\p{^L}",
            r"\P{^Greek}",
            r"[\d-z]",
            r"\é",
            "",
            ".*",
            "[a-z]+",
            "(?i)a",
            "(a|b){2,3}?",
            "[]a]",
            "[^]a]",
            "[a&&b]",
            "[[a]",
            "[[:alpha:][:^digit:]]",
            r"\pN",
            r"\x{41}\x41",
            "(?P<n>a)",
            "a{0}",
            "a{2,}",
            r"\-\_\.",
            "[-a]",
            "[a-]",
        ] {
            assert!(compile(pattern).is_ok(), "{pattern}");
        }
    }

    /// Each was asked of Apache Kafka 4.4.0, which answers INVALID_REGULAR_EXPRESSION.
    #[test]
    fn what_kafka_refuses() {
        for pattern in [
            "x{1001}",
            "a++",
            "a**",
            "a*+",
            "x*?{2}",
            "[[:foo:]]",
            "(?x) a",
            "(?u)a",
            "(?-u)a",
            "(?R)",
            r"\u0041",
            r"\U00000041",
            r"\p{Script=Greek}",
            r"\p{Alphabetic}",
            r"\p{Lowercase}",
            r"\p{IsGreek}",
            "[a--b]",
            "(",
            ")",
            "[",
            "*",
            r"\",
            r"\1",
            "a{2}{3}",
            "a{3,2}",
            "(?=a)",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn it_means_what_it_meant() {
        assert!(matches(r"\Qa.b\E+", "a.bb"));
        assert!(!matches(r"\Qa.b\E", "axb"));
        assert!(matches("a{,3}", "a{,3}"));
        assert!(matches(r"\101\x42", "AB"));
        assert!(matches("[a&&b]+", "a&b"));
        assert!(matches(r"[\d-z]+", "1-z"));
        assert!(matches("[a-c]{2}", "bc"));
        assert!(!matches("[a-c]{2}", "bd"));
        assert!(matches("[^a-c]", "d"));
        assert!(matches(r"\p{^Lu}", "a"));
        assert!(matches(r"\<a\>", "<a>"));
        assert!(matches(r"a\b{x}", "a{x}"));
    }
}
