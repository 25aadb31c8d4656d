//! The worker's side of the fleet: its registration, and calls between instances.

#[cfg(feature = "fleet")]
mod ack;
#[cfg(feature = "fleet")]
mod backoff;
#[cfg(feature = "fleet")]
mod calls;
#[cfg(feature = "fleet")]
mod echo;
#[cfg(feature = "fleet")]
mod headroom;
#[cfg(feature = "fleet")]
pub(crate) mod http;
pub(crate) mod local;
#[cfg(feature = "fleet")]
mod messages;
#[cfg(feature = "fleet")]
mod metrics;
#[cfg(feature = "fleet")]
pub(crate) mod placements;
#[cfg(feature = "fleet")]
pub(crate) mod registration;
#[cfg(feature = "fleet")]
mod releases;
#[cfg(feature = "fleet")]
pub(crate) mod remote;
#[cfg(feature = "fleet")]
mod session;
#[cfg(feature = "fleet")]
pub(crate) mod settings;
#[cfg(feature = "fleet")]
pub(crate) mod standing;
#[cfg(feature = "fleet")]
pub(crate) mod transport;
