//! What a node says of itself: one JSON object a line on standard output, or lines for people where that is a terminal (P1.5).
//!
//! Hostname and env are fields of a line, never labels of a metric; tokens, secrets, cookies and attestations are in neither. What is for
//! people alone, the [`StartBlock`], goes to standard error.

mod filter;
mod output;
mod start_block;

pub use filter::LogFilter;
pub use output::{LogFormat, install, subscriber};
pub use start_block::StartBlock;
