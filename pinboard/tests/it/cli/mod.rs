//! The command line (P1.2).

mod args;
mod commands;
#[cfg(unix)]
mod program;
mod scripted;
