//! Fleets of real processes: pinboard, Redis, PostgreSQL and workers, and what happens when they are killed, stopped,
//! cut off and restarted (P12).
//!
//! Whatever a test does to its fleet, the end of its [`Rig`](rig::Rig) checks what all of them promise: one live instance
//! per id (`lives`), and no write past the fence (`history`).
//!
//! `PINNED_FAULTS` says how many rounds of random faults are run (3, unless it does); `PINNED_SEED` repeats a run's
//! moments.

#![allow(
    clippy::disallowed_methods,
    reason = "processes are killed and watched in real time"
)]

mod activity;
mod calls;
mod cases;
mod cut;
mod deploy;
mod example;
mod faults;
mod history;
mod lives;
mod load;
mod mixed;
mod process;
mod python;
mod rig;
mod rolling;
mod shutdown;
mod wedged;
mod wind_down;
