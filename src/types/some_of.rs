//! Long lists in a line.

use std::fmt::Display;

/// The first `shown_max` of `count` names, and how many more there are.
pub fn some_of<T: Display>(
    names: impl IntoIterator<Item = T>,
    count: usize,
    shown_max: usize,
) -> String {
    let names = names.into_iter().take(shown_max);
    let first: Vec<String> = names.map(|name| name.to_string()).collect();
    let more = count - first.len();
    let first = first.join(", ");
    match more {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
