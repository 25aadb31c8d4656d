//! What is asked of a server.

use std::time::Duration;

use redis::{Cmd, Pipeline};

use super::keys::Place;
use super::scripts::Script;

/// Commands of one place. They are sent one after the other, with nothing of this node in between.
pub(super) struct Request {
    pub(super) place: Place,
    commands: Vec<Command>,
}

enum Command {
    Script {
        script: &'static Script,
        keys: Vec<String>,
        arguments: Vec<Vec<u8>>,
    },
    Plain(Cmd),
}

/// What a script is called with.
pub(super) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

// ===== impl Call =====

impl Call {
    /// A call of `script`, with the keys that all scripts of `place` are given.
    pub(super) fn new(place: Place, script: &'static Script) -> Self {
        Self::with_keys(script, place.keys())
    }

    pub(super) fn with_keys(script: &'static Script, keys: Vec<String>) -> Self {
        Self {
            script,
            keys,
            arguments: Vec::new(),
        }
    }

    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(super) fn keys(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.keys.extend(keys);
        self
    }

    pub(super) fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.arguments.push(argument.as_ref().to_vec());
        self
    }

    pub(super) fn number(self, argument: impl std::fmt::Display) -> Self {
        self.arg(argument.to_string())
    }

    pub(super) fn millis(self, duration: Duration) -> Self {
        self.number(millis(duration))
    }

    pub(super) fn at(self, place: Place) -> Request {
        Request::new(place).call(self)
    }
}

/// Whole milliseconds, rounded up: what was asked to last does. At most a century, so that no time overflows.
pub(super) fn millis(duration: Duration) -> u64 {
    const CENTURY: u64 = 1_000 * 86_400 * 365 * 100;
    let whole = u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    whole.min(CENTURY)
}

// ===== impl Request =====

impl Request {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            commands: Vec::new(),
        }
    }

    pub(super) fn call(mut self, call: Call) -> Self {
        self.commands.push(Command::Script {
            script: call.script,
            keys: call.keys,
            arguments: call.arguments,
        });
        self
    }

    pub(super) fn plain(mut self, command: Cmd) -> Self {
        self.commands.push(Command::Plain(command));
        self
    }

    /// How many answers it has.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Writes its commands, for the server that the connection has seen as `run_id`.
    pub(super) fn write(
        &self,
        run_id: &str,
        quarantine: u64,
        whole_scripts: bool,
        into: &mut Pipeline,
    ) {
        for command in &self.commands {
            match command {
                Command::Script {
                    script,
                    keys,
                    arguments,
                } => {
                    let mut call = Cmd::new();
                    if whole_scripts {
                        call.arg("EVAL").arg(&script.source);
                    } else {
                        call.arg("EVALSHA").arg(&script.sha);
                    }
                    call.arg(keys.len()).arg(keys);
                    call.arg(run_id).arg(quarantine).arg(arguments);
                    into.add_command(call);
                }
                Command::Plain(command) => {
                    into.add_command(command.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_last_as_long_as_was_asked_and_never_overflow() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::MAX), 3_153_600_000_000);
    }
}
