//! The processes of this fleet.

use std::env;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

pub(crate) const HOST: &str = "127.0.0.1";
/// For a fleet on one machine; a real one has secrets.
pub(crate) const TOKEN: &str = "letmein";
/// Which part a process plays.
const ROLE: &str = "FLEET_ROLE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Pinboard,
    Worker,
}

impl Role {
    /// `None`: the process that a person started.
    pub(crate) fn of_this_process() -> Result<Option<Self>, Box<dyn Error>> {
        match env::var(ROLE).ok().as_deref() {
            None => Ok(None),
            Some("pinboard") => Ok(Some(Self::Pinboard)),
            Some("worker") => Ok(Some(Self::Worker)),
            Some(other) => {
                Err(format!("{ROLE} is {other:?}; pinboard or worker is expected").into())
            }
        }
    }
}

/// A child process, which is killed when this is dropped.
pub(crate) struct Member {
    pub(crate) port: u16,
    child: Child,
}

impl Member {
    pub(crate) fn pinboard(port: u16) -> io::Result<Self> {
        Self::start("pinboard", port, |_| {})
    }

    /// A worker of the pinboard at `pinboard`; all of them keep their counts in `store`.
    pub(crate) fn worker(port: u16, pinboard: &str, store: &Path) -> io::Result<Self> {
        Self::start("worker", port, |command| {
            command
                .env("BIND", HOST)
                .env("PINBOARD_URL", pinboard)
                .env("PINBOARD_TOKEN", TOKEN)
                .env("ADVERTISE_URL", format!("http://{HOST}:{port}"))
                .env("PINNED_STORE", format!("sqlite:{}", store.display()));
        })
    }

    fn start(role: &str, port: u16, configure: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command
            .env(ROLE, role)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            // What the workers would say at their start is not what this tour is about; whoever sets `RUST_LOG` wants to read it.
            .stderr(match env::var_os("RUST_LOG") {
                Some(_) => Stdio::inherit(),
                None => Stdio::null(),
            })
            // Ctrl-C is for the guide, which ends the others in order.
            .process_group(0)
            .kill_on_drop(true);
        configure(&mut command);
        Ok(Self {
            port,
            child: command.spawn()?,
        })
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// SIGTERM, and then its end.
    pub(crate) async fn terminate(mut self) -> Result<(), Box<dyn Error>> {
        if let Some(pid) = self.child.id() {
            Command::new("kill").arg(pid.to_string()).status().await?;
        }
        let status = self.child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a process of the fleet ended with {status}").into())
        }
    }

    /// Fails when the process has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), Box<dyn Error>> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!(
                "the process on port {} ended with {status}; is the port taken?",
                self.port
            )
            .into()),
        }
    }
}
