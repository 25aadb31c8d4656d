//! Tests of close.
