//! Tests of surface.
