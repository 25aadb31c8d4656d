//! Tests of authorization.
