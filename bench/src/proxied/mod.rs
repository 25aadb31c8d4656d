//! A pinboard, a worker behind it, and nginx in front of the same worker.

mod backend;
mod nginx;
mod node;
mod process;
mod registrar;
mod worker;
mod wrk;

pub use backend::{Backend, serve_if_started_as_backend, unix_micros};
pub use nginx::Nginx;
pub use node::{Node, NodeOptions, TOKEN};
pub use process::{Process, free_port, workspace_binary};
pub use registrar::Registrar;
pub use worker::{Serves, Worker, serve_if_started_as_worker};
pub use wrk::{Wrk, WrkReport};
