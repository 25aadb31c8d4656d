//! pinboard, the control plane of pinned: a registry of workers, placement of ids, and the proxy in front of them.
//!
//! [`Pinboard::builder`] runs a node inside another program; the program `pinboard` is that and a command line. From the ground up, each
//! module uses only those before it:
//!
//! | module | what it is |
//! |---|---|
//! | [`settings`] | what a node has been told |
//! | [`store`] | where the fleet's state is kept: the contract, in memory, in Redis |
//! | [`upstream`] | connections to workers |
//! | [`passport`] | who is asking, and what they may do |
//! | [`events`], [`metrics`] | what is told of what happens |
//! | [`workers`], [`placement`] | who lives, and who holds what |
//! | [`sessions`], [`operators`] | the routes of workers and of operators |
//! | [`proxy`], [`server`] | the data plane, and listening for it |
//! | [`scanner`] | durable work that nobody lives for |
//! | [`node`], [`config`], [`logs`], [`cli`] | one node put together, its environment, what it says, its command line |

pub mod cli;
pub mod config;
pub mod events;
mod headers;
pub mod logs;
pub mod metrics;
pub mod node;
pub mod operators;
pub mod passport;
pub mod placement;
pub mod proxy;
pub mod scanner;
pub mod server;
pub mod sessions;
pub mod settings;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod upstream;
pub mod workers;

pub use node::Pinboard;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
