//! pinned

pub mod domain;
pub mod lease;
