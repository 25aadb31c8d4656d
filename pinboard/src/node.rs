//! A whole node: its parts, put together.
