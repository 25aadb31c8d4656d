//! Tests of turns.
