//! One node, put together and run: in its own process, or inside another program.

mod background;
mod error;
mod figures;
mod parts;
mod registry_store;
mod roster;

pub use error::StartError;
