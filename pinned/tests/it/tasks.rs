//! Tests of tasks.
