//! The signals that end a process.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, from its making on.
pub(super) struct Terminations {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
}

impl Terminations {
    /// Takes both signals over from their default, which ends the process.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one's number.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        };
        kind.as_raw_value()
    }

    /// The next one's number.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        2
    }
}
