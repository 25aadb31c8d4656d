//! Tests of dispatch.
