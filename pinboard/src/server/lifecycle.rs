//! How far a node is on its way out (P1.6).

use pinned_domain::Event;

/// How far a node is on its way out. Cheap to clone; clones are the same.
///
/// ```
/// use pinboard::server::Lifecycle;
///
/// let lifecycle = Lifecycle::new();
/// assert!(!lifecycle.is_leaving(), "what `/readyz` asks, among other things");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    leaving: Event,
    closing: Event,
    ended: Event,
}

impl Lifecycle {
    /// A node that serves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the node is about to stop: it still answers, and should get no new clients.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_set()
    }

    /// Ends once the node has begun to stop.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn left(&self) {
        self.leaving.wait().await;
    }

    /// Ends once nothing is served any more.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn ended(&self) {
        self.ended.wait().await;
    }

    /// Whether this was the first call.
    pub(super) fn leave(&self) -> bool {
        let is_first = !self.leaving.is_set();
        self.leaving.set();
        is_first
    }

    /// Ends once no new connections are taken.
    pub(super) async fn closing(&self) {
        self.closing.wait().await;
    }

    pub(super) fn close(&self) {
        self.leave();
        self.closing.set();
    }

    pub(super) fn end(&self) {
        self.close();
        self.ended.set();
    }
}
