//! Tests of idle.
