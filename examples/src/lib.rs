//! What all examples do alike.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Shows what goes wrong on standard error: warnings and errors, or what `RUST_LOG` says (`RUST_LOG=info`,
/// `RUST_LOG=pinned=debug`).
///
/// `pinned` only reports to `tracing`; what becomes of that is for the program to say. Without a subscriber nothing is shown.
pub fn show_warnings() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
