//! Tests of `proxy`.
