//! What a worker and an operator say to the registry, and what it answers: the JSON bodies of `/registry/*`.
//!
//! Field names on the wire are camel case and exact. Members that are not named here are ignored, an optional member
//! that is `null` counts as absent, and what has the wrong type is an error that says what was expected.
//!
//! ```
//! use pinned_wire::registry::{ControlMessage, HeartbeatAck};
//!
//! let ack: HeartbeatAck = serde_json::from_str(
//!     r#"{"expiresInMs":15000,"draining":false,
//!         "messages":[{"msgId":"1","type":"wind_down","ns":"/rooms","id":"blue","deadline":15}]}"#,
//! )?;
//! assert_eq!(ack.expires_in_ms, 15_000);
//! assert!(matches!(&ack.messages[0], ControlMessage::WindDown(order) if order.id == "blue"));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod deadline;
mod operator;
mod refusal;
mod secret;
mod worker;

pub use deadline::{Deadline, LONGEST_DEADLINE};
pub use operator::{DrainOrder, Queued, UndrainOrder, WindDownOrder, WindDownQueued};
pub use refusal::Refusal;
pub use secret::Secret;
pub use worker::{
    ControlMessage, Deregister, Heartbeat, HeartbeatAck, InstanceRef, Register, RegisterAck,
    Release, ReleaseAck, ReleaseItem, Takeover, WindDown,
};

/// Worker to registry: a registration.
pub const REGISTER_PATH: &str = "/registry/register";
/// Worker to registry: a heartbeat.
pub const HEARTBEAT_PATH: &str = "/registry/heartbeat";
/// Worker to registry: placements handed back.
pub const RELEASE_PATH: &str = "/registry/release";
/// Worker to registry: the end of a session.
pub const DEREGISTER_PATH: &str = "/registry/deregister";
/// Registry to worker: the proof that an advertised URL is the worker's own.
pub const CHALLENGE_PATH: &str = "/_pinned/challenge";
/// Registry to worker: what lives there.
pub const STATS_PATH: &str = "/_pinned/stats";
