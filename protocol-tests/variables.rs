//! The names a case gives to values: put into what is sent, and taken back out of what comes.

use std::collections::BTreeMap;

/// `$name`, `$name.id`, and `$name+5` where the value is a number.
#[derive(Debug, Default, Clone)]
pub struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
    }

    /// The text with the values of its variables.
    pub fn fill(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let (name, after) = self.longest_name(rest)?;
            let value = &self.values[name];
            let digits = after.strip_prefix('+').map(|after| {
                let end = after.find(|c: char| !c.is_ascii_digit());
                after.split_at(end.unwrap_or(after.len()))
            });
            match (value.parse::<i64>(), digits) {
                (Ok(number), Some((digits, after))) if !digits.is_empty() => {
                    let added: i64 = digits.parse().map_err(|_| "too large a number")?;
                    out.push_str(&(number + added).to_string());
                    rest = after;
                }
                _ => {
                    out.push_str(value);
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn longest_name<'t>(&self, text: &'t str) -> Result<(&'t str, &'t str), String> {
        let known = self.values.keys().filter(|name| text.starts_with(*name));
        let longest = known.max_by_key(|name| name.len());
        let length = longest.ok_or_else(|| {
            let name: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
            format!("no variable is called {name}")
        })?;
        Ok(text.split_at(length.len()))
    }

    /// The text with the variables of its values: the reverse of `fill`, for texts of some length.
    pub fn hide(&self, text: &str) -> String {
        const VALUE_BYTES_MIN: usize = 8;
        let mut longest_first: Vec<_> = self
            .values
            .iter()
            .filter(|(_, value)| value.len() >= VALUE_BYTES_MIN)
            .collect();
        longest_first.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let hidden = |text: String, (name, value): (&String, &String)| {
            text.replace(value.as_str(), &format!("${name}"))
        };
        longest_first.into_iter().fold(text.to_owned(), hidden)
    }
}

#[test]
fn variables_go_in_and_come_out() {
    let mut variables = Variables::default();
    variables.set("a", "topic-of-this-run");
    variables.set("a.id", "AAAAAAAAAAAAAAAAAAAAAQ");
    variables.set("t0", "1000");
    let filled = variables.fill(r#"["$a", "$a.id", $t0+5, $t0]"#).unwrap();
    assert_eq!(
        filled,
        r#"["topic-of-this-run", "AAAAAAAAAAAAAAAAAAAAAQ", 1005, 1000]"#
    );
    assert_eq!(variables.hide("AAAAAAAAAAAAAAAAAAAAAQ"), "$a.id");
    assert_eq!(variables.hide("x topic-of-this-run"), "x $a");
    assert!(variables.fill("$b").is_err());
}
