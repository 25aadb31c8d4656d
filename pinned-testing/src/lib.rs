//! pinned-testing
