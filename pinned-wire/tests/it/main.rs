//! The contract, item by item of `spec/worker-wire.md` (W) and `spec/hosting.md` (H).

mod attestation;
mod chain;
mod epoch;
mod headers;
mod ids;
