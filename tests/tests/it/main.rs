//! What crosses crates.

mod browser;
mod crashes;
mod dependency_names;
mod documents;
mod executable;
mod manifests;
mod process;
mod registry;
mod sweep;
mod ui;
