//! An error with what caused it, for one line of a log or of a terminal.

use std::error::Error;

/// The error and its causes, each after a colon; a cause whose text is in it already is left out.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let reason = cause.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("cannot start")]
        Outer(#[source] Box<Layer>),
        #[error("{0}")]
        Same(#[source] Box<Layer>),
        #[error("the disk is broken")]
        Inner,
    }

    #[test]
    fn each_cause_is_told_once() {
        let inner = || Box::new(Layer::Inner);
        let all = "cannot start: the disk is broken";
        assert_eq!(with_causes(&Layer::Inner), "the disk is broken");
        assert_eq!(with_causes(&Layer::Outer(inner())), all);
        let same = Layer::Same(inner());
        assert_eq!(with_causes(&same), "the disk is broken");
        assert_eq!(with_causes(&Layer::Outer(Box::new(same))), all);
    }
}
