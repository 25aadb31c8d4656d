//! Tests of wind_down.
