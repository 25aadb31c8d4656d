//! What the private servers share: each is a program of its own, in a folder of its own, ended with this process.

mod folder;
mod guardian;
mod log;
mod port;
mod program;

pub(crate) use folder::Folder;
pub(crate) use guardian::{Guarded, Served};
pub(crate) use program::{complete, folder_with, run_blocking};
