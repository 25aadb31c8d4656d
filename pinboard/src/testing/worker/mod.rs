//! A worker that does exactly what the wire says, and what a test tells it.

mod body;
mod clock;
mod core;
mod fence;
mod handler;
mod key;
mod knobs;
mod lease;
mod ledger;
mod log;
mod messages;
mod options;
mod refusal;
mod registration;
mod releases;
mod requests;
mod run;
mod scripted;
mod state;
mod transport;
mod work;

pub use body::{WorkerBody, full};
pub use handler::{Counters, WorkerCall, WorkerHandler, WorkerInstance, text};
pub use key::InstanceKey;
pub use knobs::{ChallengeAnswer, Knobs};
pub use ledger::{Fenced, Ledger, Write};
pub use log::{Activation, ActivationLog, Overlap};
pub use options::WorkerOptions;
pub use refusal::RefusalReason;
pub use registration::RegistryFailure;
pub use scripted::ScriptedWorker;
pub use transport::{ByteStream, HttpRegistry, RegistryAnswer, RegistryTransport};
pub use work::OpenStream;
