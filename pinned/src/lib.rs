//! pinned

pub mod domain;
pub mod lease;
pub mod ws;
