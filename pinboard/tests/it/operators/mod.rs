//! Tests of `operators`.
