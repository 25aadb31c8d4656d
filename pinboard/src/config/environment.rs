//! Looking variables up.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use super::{ConfigError, Variable};

/// Variables by name. One that is empty, or nothing but spaces, counts as unset.
pub(super) struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
}

impl<'a> Environment<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { lookup }
    }

    /// The value, trimmed.
    pub(super) fn get(&self, variable: &Variable) -> Result<Option<String>, ConfigError> {
        let Some(value) = (self.lookup)(variable.name) else {
            return Ok(None);
        };
        // What is no text is set all the same: it must not pass for a missing one.
        let Ok(value) = value.into_string() else {
            let takes = variable.takes;
            return Err(ConfigError::new(
                variable,
                format!("is not UTF-8; it takes {takes}"),
            ));
        };
        let value = value.trim();
        Ok((!value.is_empty()).then(|| value.to_owned()))
    }

    /// The value of a variable that a passport names, as it is; one that is no text counts as unset.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name)?.into_string().ok()
    }

    /// What `read` makes of the value; `None` from it is a malformed one.
    pub(super) fn read<T>(
        &self,
        variable: &Variable,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        match self.get(variable)? {
            None => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(ConfigError::malformed(variable, &value)),
            },
        }
    }

    /// A whole number within `range`.
    pub(super) fn number(
        &self,
        variable: &Variable,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        self.read(variable, |value| {
            // The parser would take a plus sign as well.
            let digits = value.bytes().all(|byte| byte.is_ascii_digit());
            let number = value.parse().ok().filter(|_| digits)?;
            range.contains(&number).then_some(number)
        })
    }
}
