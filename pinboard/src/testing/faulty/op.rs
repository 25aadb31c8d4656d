//! The operations by name.

/// Which operation of a [`RegistryStore`](crate::store::RegistryStore) a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreOp {
    /// `prepare`
    Prepare,
    /// `ping`
    Ping,
    /// `quarantine`
    Quarantine,
    /// `extend_quarantine`
    ExtendQuarantine,
    /// `register`
    Register,
    /// `reclaim`
    Reclaim,
    /// `heartbeat`
    Heartbeat,
    /// `end_session`
    EndSession,
    /// `client_of`
    ClientOf,
    /// `sessions_since`
    SessionsSince,
    /// `row`
    Row,
    /// `claim`
    Claim,
    /// `release`
    Release,
    /// `fence`
    Fence,
    /// `held_by`
    HeldBy,
    /// `row_counts`
    RowCounts,
    /// `sweep`
    Sweep,
    /// `client`
    Client,
    /// `order_drain`
    OrderDrain,
    /// `queue_messages`
    QueueMessages,
    /// `append_events`
    AppendEvents,
    /// `events_after`
    EventsAfter,
    /// `lead`
    Lead,
    /// `stand_down`
    StandDown,
    /// `leader`
    Leader,
}
