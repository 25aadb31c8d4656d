//! Tests of `upstream`.
