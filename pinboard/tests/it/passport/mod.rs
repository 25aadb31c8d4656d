//! Tests of `passport`.
