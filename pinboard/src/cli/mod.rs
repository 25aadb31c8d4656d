//! The operator's subcommands (P1.2).
