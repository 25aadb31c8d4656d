//! The command line that the benches share.

use std::{env, str::FromStr, time::Duration};

use crate::{Result, cores::Cores, server::Role};

/// `--name value` pairs, each taken by the bench that knows it.
pub struct Options {
    rest: Vec<String>,
}

impl Options {
    /// The arguments of this process.
    pub fn from_env() -> Self {
        Self {
            rest: env::args().skip(1).collect(),
        }
    }

    /// The value of `--name`, or `default`.
    ///
    /// # Errors
    /// When the value is missing or does not parse.
    pub fn take<T: FromStr<Err: ToString>>(&mut self, name: &str, default: T) -> Result<T> {
        let Some(at) = self.rest.iter().position(|argument| argument == name) else {
            return Ok(default);
        };
        let Some(value) = self.rest.get(at + 1) else {
            return Err(format!("{name} needs a value").into());
        };
        let value = value
            .parse()
            .map_err(|error: T::Err| format!("{name}: {}", error.to_string()))?;
        self.rest.drain(at..at + 2);
        Ok(value)
    }

    /// The seconds of `--name`, or `default` seconds.
    ///
    /// # Errors
    /// As [`Options::take`].
    pub fn take_seconds(&mut self, name: &str, default: f64) -> Result<Duration> {
        Ok(Duration::try_from_secs_f64(self.take(name, default)?)?)
    }

    /// The comma-separated servers of `--name`, or `default`.
    ///
    /// # Errors
    /// As [`Options::take`].
    pub fn take_roles(&mut self, name: &str, default: &[Role]) -> Result<Vec<Role>> {
        let list: String = self.take(name, String::new())?;
        if list.is_empty() {
            return Ok(default.to_vec());
        }
        Ok(list.split(',').map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Cores shared after `--share-cores`, else split between load and servers.
    ///
    /// # Errors
    /// As [`Cores::split`].
    pub fn take_cores(&mut self) -> Result<Cores> {
        let Some(at) = self
            .rest
            .iter()
            .position(|argument| argument == "--share-cores")
        else {
            return Ok(Cores::split()?);
        };
        self.rest.remove(at);
        Ok(Cores::shared())
    }

    /// Ends the parsing.
    ///
    /// # Errors
    /// When an argument was not taken.
    pub fn finish(self) -> Result<()> {
        match self.rest.first() {
            None => Ok(()),
            Some(argument) => Err(format!("unknown argument {argument:?}").into()),
        }
    }
}
