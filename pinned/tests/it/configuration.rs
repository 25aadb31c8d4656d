//! Tests of configuration.
