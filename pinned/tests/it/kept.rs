//! Tests of kept.
