//! Tests of wake.
