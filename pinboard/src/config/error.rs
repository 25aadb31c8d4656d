//! A variable that cannot be used.

use super::Variable;

/// A variable that cannot be used: one line, which never shows a value that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct ConfigError {
    variable: &'static str,
    problem: String,
}

/// As much of a value as an error shows.
const SHOWN: usize = 60;

impl ConfigError {
    /// `variable` is set, and `problem` is why it cannot be used: a phrase such as `is not supported`.
    pub(super) fn new(variable: &Variable, problem: impl Into<String>) -> Self {
        Self {
            variable: variable.name,
            problem: problem.into(),
        }
    }

    /// The value is not what the variable takes.
    pub(super) fn malformed(variable: &Variable, value: &str) -> Self {
        let takes = variable.takes;
        if variable.secret {
            return Self::new(variable, format!("is malformed; it takes {takes}"));
        }
        let shown: String = value.chars().take(SHOWN).collect();
        let more = if shown.len() < value.len() { "..." } else { "" };
        // Debug keeps it on one line, whatever is in it.
        Self::new(variable, format!("is {shown:?}{more}; it takes {takes}"))
    }

    /// `variable` is set, and `line` says all of it, its name included.
    pub(super) fn explained(variable: &Variable, line: &str) -> Self {
        let problem = line.strip_prefix(variable.name).unwrap_or(line);
        Self::new(variable, problem.trim_start())
    }

    /// The variable at fault.
    #[must_use]
    pub fn variable(&self) -> &'static str {
        self.variable
    }
}
