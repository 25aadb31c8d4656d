//! Tests of `placement`, and of the events that it records.

mod choosing;
mod claiming;
mod counting;
mod events;
mod knowing;
mod outage;
mod refusals;
pub(crate) mod scene;
pub(crate) mod spy;
mod stampede;
mod story;
