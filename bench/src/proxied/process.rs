use std::{
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use crate::Result;

/// A process that ends with this value.
pub struct Process(Child);

impl Process {
    /// Starts `command` with its output thrown away, except what goes to standard error.
    ///
    /// # Errors
    /// When the program is not there.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        Ok(Self(child))
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of 127.0.0.1 that nobody listens on.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// The path of another program of this workspace, built in this program's profile, which must have been built before.
///
/// # Errors
/// When it has not.
pub fn workspace_binary(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!(
            "{} is missing: cargo build --release -p {name}",
            path.display()
        )
        .into())
    }
}
