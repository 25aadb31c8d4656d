//! The command line (P1.2).

mod args;
mod commands;
mod scripted;
