//! The contract between a worker and pinboard, the control plane: what both sides must read and write alike.
//!
//! | module | what it fixes |
//! |---|---|
//! | [`attestation`] | the signed token that tells a worker who is calling |
//! | [`chain`] | the chain of calls that a call between instances belongs to |
//! | [`epoch`] | the placement epoch of a request |
//! | [`headers`] | the names of the headers |
//! | [`ids`] | which ids and namespaces exist |
//! | [`registry`] | the bodies of `/registry/*` |

pub mod attestation;
pub mod chain;
pub mod epoch;
pub mod headers;
pub mod ids;
pub mod registry;
