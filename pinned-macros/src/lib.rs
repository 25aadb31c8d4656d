//! pinned-macros
