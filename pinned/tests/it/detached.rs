//! Tests of detached.
