//! Tests of fences.
