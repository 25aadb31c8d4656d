//! Sending a request: its head, and its body as it comes.

mod outgoing;
mod queue;
mod trailers;

pub(super) use outgoing::{Outgoing, SendError, Sent, Upload};
