//! The data plane: from a client's request to its worker and back (P5).
//!
//! A request passes through here in one go, without a task of its own:
//!
//! | step | where |
//! |---|---|
//! | which instance, under which host, with which body | [`Target`], `host`, `head` |
//! | who asks: somebody from outside, or another instance | [`Passport`](crate::passport::Passport), `cluster_call` |
//! | who holds the instance | [`Placement`](crate::placement::Placement) |
//! | the head as the worker gets it, in one buffer | `headers`, `head` |
//! | the exchange, and again when the worker has not run the request | [`Backend`](crate::upstream::Backend), `refusal`, `replay` |
//! | the answer, or a connection that becomes a tunnel | `answer`, [`AnswerBody`], [`Tunnel`] |

mod answer;
mod body;
mod client;
mod cluster_call;
mod forward;
mod head;
mod headers;
mod host;
mod metrics;
mod present;
mod refusal;
mod replay;
mod target;
mod tunnel;

pub use body::AnswerBody;
pub use client::Client;
pub use forward::{Handled, Proxy};
pub use target::{Target, TargetError};
pub use tunnel::Tunnel;

pub(crate) use metrics::Held;

/// The rules for headers and frames, which are fuzzed.
#[doc(hidden)]
pub mod rules {
    pub use super::headers::{RequestRules, strip_response, write_request};
    pub use super::tunnel::Frames;
}
