//! Topic names by pattern, as the tools take them: Java's regular expressions, matched against the
//! whole name (`IncludeList`).
//!
//! A comma means "or", and quotes around the whole are taken off. Look-around and back references
//! of Java's dialect are refused: nobody names topics with them.

use regex::Regex;

use super::exit::Exit;

pub struct NamePattern {
    regex: Regex,
}

impl NamePattern {
    /// A list of topics as `--topic` takes it.
    pub fn include_list(text: &str) -> Result<NamePattern, Exit> {
        let text = text.trim().replace(',', "|").replace(' ', "");
        let bare = text
            .trim_start_matches(['"', '\''])
            .trim_end_matches(['"', '\'']);
        NamePattern::java(bare).map_err(|_| {
            let message = format!("{text} is an invalid regex.");
            Exit::output(format!("Error while executing topic command : {message}"))
        })
    }

    /// A pattern that has to match the whole name.
    pub fn java(text: &str) -> Result<NamePattern, regex::Error> {
        let regex = Regex::new(&format!("^(?:{text})$"))?;
        Ok(NamePattern { regex })
    }

    pub fn is_match(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_matched() {
        let pattern = NamePattern::include_list("a.*, b|c").unwrap();
        let matches = |name| pattern.is_match(name);
        assert!(matches("abc") && matches("b") && matches("c"));
        assert!(!matches("xab") && !matches("bc"));
        assert!(NamePattern::include_list("a(").is_err());
    }
}
