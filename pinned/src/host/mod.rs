//! Hosting: one namespace on one worker.
//!
//! A [`core::Host`] owns a [`directory::Directory`] of [`record::Record`]s. A record is one instance's state machine;
//! `activation` brings it to life, `turns` says who may touch it, `wind_down`, `sweep` and `timers` decide when it
//! goes, and `close` takes it down. `hosts` finds the host of a path, `head` reads who asks for which id, `dispatch`
//! and `socket` bring the request to its handler, by way of `authorization`.

pub(crate) mod activation;
pub(crate) mod authorization;
pub(crate) mod close;
pub(crate) mod core;
pub(crate) mod directory;
pub(crate) mod dispatch;
mod durable;
pub(crate) mod env;
pub(crate) mod fence;
pub(crate) mod handle;
pub(crate) mod head;
pub(crate) mod hosts;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod record;
mod resume;
pub(crate) mod routes;
pub(crate) mod seam;
pub(crate) mod socket;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod timers;
pub(crate) mod tokens;
pub(crate) mod turns;
pub(crate) mod wind_down;
pub(crate) mod work;
