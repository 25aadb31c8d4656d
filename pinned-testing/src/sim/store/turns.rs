//! Operations of one instance take effect in the order of their calls.

use std::collections::HashMap;

use parking_lot::Mutex;
use pinned::durability::InstanceKey;
use tokio::sync::oneshot;

/// Who is next, instance by instance.
#[derive(Default)]
pub(super) struct Turns {
    /// The end of the operation that was called last.
    last: Mutex<HashMap<InstanceKey, oneshot::Receiver<()>>>,
}

/// One operation's place; the next one's turn comes when this is dropped.
pub(super) struct Turn {
    earlier: Option<oneshot::Receiver<()>>,
    _ends: oneshot::Sender<()>,
}

impl Turns {
    pub(super) fn take(&self, instance: &InstanceKey) -> Turn {
        let (ends, ended) = oneshot::channel();
        let mut last = self.last.lock();
        last.retain(|_, ended| {
            matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
        });
        Turn {
            earlier: last.insert(instance.clone(), ended),
            _ends: ends,
        }
    }
}

impl Turn {
    pub(super) async fn come(&mut self) {
        if let Some(earlier) = self.earlier.take() {
            // Nothing is ever sent: its end is the drop of its sender.
            let _ = earlier.await;
        }
    }
}
