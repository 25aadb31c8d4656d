//! What tests of this crate and of others need: the suite of a registry store, a scripted worker, a store that fails.

pub mod conformance;
mod faulty;
mod worker;

pub use faulty::{CutOff, FaultyStore, StoreCall, StoreFault, StoreFaults, StoreOp};
pub use worker::{
    Activation, ActivationLog, ByteStream, ChallengeAnswer, Counters, Fenced, HttpRegistry,
    InstanceKey, Knobs, Ledger, OpenStream, Overlap, RefusalReason, RegistryAnswer,
    RegistryFailure, RegistryTransport, ScriptedWorker, WorkerBody, WorkerCall, WorkerHandler,
    WorkerInstance, WorkerOptions, Write, full, text,
};
