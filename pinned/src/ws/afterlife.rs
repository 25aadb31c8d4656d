//! The end of a socket that an instance has opened.

use std::{
    sync::{Arc, Weak},
    task::Waker,
};

use tokio::sync::oneshot;

use super::{
    CloseFrame, close_code,
    link::Link,
    slot::{CLOSE_WAIT, Slot},
    wakes::Wakes,
};
use crate::domain::Domain;

/// What is left to do for a socket that an instance has opened, until it is over.
pub(crate) struct Afterlife {
    slot: Weak<Slot>,
    domain: Domain,
    wakes: Arc<Wakes>,
    waker: Waker,
    dropped: oneshot::Receiver<Box<Link>>,
}

impl Afterlife {
    pub(super) fn new(
        slot: &Arc<Slot>,
        domain: Domain,
        wakes: Arc<Wakes>,
        dropped: oneshot::Receiver<Box<Link>>,
    ) -> Self {
        Self {
            slot: Arc::downgrade(slot),
            domain,
            waker: Waker::from(wakes.clone()),
            wakes,
            dropped,
        }
    }

    /// Resolves once the socket is over: when `cut_off` does, which ends it with a close frame, or when it was dropped, and
    /// the other end has heard of that.
    pub(crate) async fn run(self, cut_off: impl Future<Output = ()>) {
        let Self {
            slot,
            domain,
            wakes,
            waker,
            mut dropped,
        } = self;
        let link = tokio::select! {
            biased;
            () = cut_off => match slot.upgrade() {
                Some(slot) => {
                    let frame = CloseFrame::new(close_code::GOING_AWAY, "instance closed");
                    return slot.end(frame).await;
                }
                // It was dropped just before, or is being dropped: what it leaves is there, or comes at once.
                None => dropped.await,
            },
            link = &mut dropped => link,
        };
        if let Ok(mut link) = link {
            let goodbye = wakes.until_ready(&waker, |_| link.poll_goodbye());
            let _ = domain.timeout(CLOSE_WAIT, goodbye).await;
        }
    }
}
