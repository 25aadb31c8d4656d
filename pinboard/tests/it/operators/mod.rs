//! Tests of `operators`.

mod access;
mod deadlines;
mod drain;
mod events;
mod health;
mod overview;
mod probes;
mod stats;
mod wind_down;
mod workers;
