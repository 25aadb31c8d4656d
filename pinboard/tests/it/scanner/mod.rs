//! Finding durable work and waking it (P8).

mod postgres;
