//! The worker in local mode: drain, stats, metrics and log (`worker-wire.md` W10, W13, W15, W16), and a real process.
//!
//! Everything of a registration is left out: there is no control-plane client yet. That is W2 to W6, W8.5, W10.2,
//! W11, W12, W14.6 to W14.8 and W17; of W15 `pinned_registered`, `pinned_registration_failures_total`,
//! `pinned_duplicate_quits_total` and `pinned_control_plane_failures_total`; of W16 what speaks of registering,
//! heartbeats, deregistering and control messages. W13.2's chained handlers do not exist in Rust: `serve` owns the
//! signals, and a program with handlers of its own drains by hand.

mod drain;
mod metrics_and_logs;
mod probe;
mod process;
mod stats;
