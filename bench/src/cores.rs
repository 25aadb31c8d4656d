//! Which cores the servers and the load generator run on.

use std::{
    ffi::OsStr,
    io,
    process::{self, Command, Stdio},
};

use crate::proc;

/// The division of the machine between the server under load and the load generator.
///
/// Apart from each other, a faster server shows as a higher rate; sharing cores, part of what it saves goes to the
/// generator and every ratio moves towards 1.
pub struct Cores {
    server: Option<String>,
}

impl Cores {
    /// The last core for this process, the others for the servers. Needs `taskset` of util-linux.
    ///
    /// # Errors
    /// When there is one core only, or `taskset` cannot be run.
    pub fn split() -> io::Result<Self> {
        let allowed = proc::allowed_cores()?;
        let [server @ .., own] = allowed.as_slice() else {
            return Err(io::Error::other("no core to run on"));
        };
        if server.is_empty() {
            return Err(io::Error::other(
                "one core cannot be split: use --share-cores",
            ));
        }
        let status = Command::new("taskset")
            .args([
                "-a",
                "-c",
                "-p",
                &own.to_string(),
                &process::id().to_string(),
            ])
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(io::Error::other("taskset failed: use --share-cores"));
        }
        let server: Vec<_> = server.iter().map(ToString::to_string).collect();
        Ok(Self {
            server: Some(server.join(",")),
        })
    }

    /// Every process anywhere.
    pub fn shared() -> Self {
        Self { server: None }
    }

    /// A command that runs `program` on the servers' cores, as the very process that is started.
    pub fn server_command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.server {
            None => Command::new(program),
            Some(list) => {
                let mut command = Command::new("taskset");
                command.args(["-c", list]).arg(program);
                command
            }
        }
    }
}
