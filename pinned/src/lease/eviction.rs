//! What work is told when its instance is to go.

/// The instance is winding down and asked its work to yield (H7.5).
///
/// Returned by [`Context::eviction_checkpoint`](crate::Context::eviction_checkpoint); a task that ends with it counts
/// as cancelled, not as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the instance is winding down")]
pub struct EvictionRequested;
