//! A pinboard, a worker behind it, and nginx in front of the same worker.

mod backend;
mod nginx;
mod node;
mod process;
mod wrk;

pub use backend::{Backend, serve_if_started_as_backend, unix_micros};
pub use nginx::Nginx;
pub use node::{Node, NodeOptions, TOKEN};
pub use process::{Process, free_port, workspace_binary};
pub use wrk::{Wrk, WrkReport};
