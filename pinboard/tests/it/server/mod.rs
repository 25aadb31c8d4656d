//! Tests of `server`.
