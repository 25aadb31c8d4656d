//! pinned-wire
