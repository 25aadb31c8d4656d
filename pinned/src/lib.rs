//! pinned

pub mod domain;
