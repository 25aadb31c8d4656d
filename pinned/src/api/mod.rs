//! What an annotated struct and its host say to each other: the trait that the macro implements, contexts, turns,
//! authorizers, and the one seam ([`seam::InstanceSeam`]) behind which the host stands.

pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod chain;
pub(crate) mod cluster;
pub(crate) mod context;
pub(crate) mod definition;
pub(crate) mod durable;
pub(crate) mod expansion;
pub(crate) mod handler;
pub(crate) mod headers;
pub(crate) mod instance;
pub(crate) mod lease;
pub(crate) mod lifespan;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod route;
pub(crate) mod scope;
pub(crate) mod seam;
pub(crate) mod socket;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod task;
pub(crate) mod tray;
pub(crate) mod turn;
