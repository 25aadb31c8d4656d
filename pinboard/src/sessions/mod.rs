//! What workers ask of the registry: register, heartbeat, release, deregister (P2).
//!
//! [`Sessions`] is the service, as plain async functions over a [`Registry`]: what this node knows and whom it asks.
//! [`router`] puts HTTP in front of it.
//!
//! A call is checked from the outside in, so that nobody learns or costs more than they may: the token (401), its scope
//! (403), the length and the form of the body (413, 400), its claims (403), and only then the world is asked: the names of
//! hosts, the worker's own URL, the store.

mod advertised;
pub mod bodies;
mod call;
mod challenge;
pub(crate) mod checks;
mod coverage;
mod deregister;
mod error;
mod grant;
mod heartbeat;
mod journal;
pub(crate) mod json;
mod register;
mod registry;
mod release;
mod resolver;
mod router;
mod service;
mod survivors;

pub use advertised::AdvertisedUrl;
pub use error::RegistryError;
pub use registry::Registry;
pub use resolver::SystemResolver;
pub use router::router;
pub use service::{Sessions, SessionsOptions};

pub(crate) use call::Call;
pub(crate) use challenge::secret_header;
pub(crate) use coverage::{addresses_of, covers, covers_client, covers_session};
pub(crate) use grant::left_until;
pub(crate) use journal::{entry, of_session};
pub(crate) use service::task_failed;
