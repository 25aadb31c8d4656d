//! Tests of activation.
