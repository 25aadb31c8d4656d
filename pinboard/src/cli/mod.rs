//! The command line: `pinboard` serves; its subcommands operate a running fleet over the HTTP API (P1.2).
//!
//! Every subcommand prints tables for people, and with `--json` what the server answered. A refusal ends with code 1 and the server's
//! message; a mistake in the command line with 2.

mod args;
mod error;
mod events;
mod facts;
mod format;
mod orders;
mod remote;
mod run;
mod stats;
mod table;
mod workers;

pub use args::{Cli, Command, Remote};
pub use error::CliError;
pub use run::{World, run};
