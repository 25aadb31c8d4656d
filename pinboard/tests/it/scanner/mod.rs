//! Finding durable work and waking it (P8).

mod fakes;
mod fleet;
mod lease;
mod postgres;
mod tls;
mod waking;
