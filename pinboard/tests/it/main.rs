//! Tests of the control plane, one module for each of its parts.

mod certificates;
mod cli;
mod config;
mod node;
mod operators;
mod passport;
mod placement;
mod proxy;
mod scanner;
mod server;
mod sessions;
mod store;
mod testing;
mod upstream;
mod workers;
