//! What survives the crash of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinned::durability::MemoryStore;

/// The image of a disk, which outlives the processes that write to it. A cheap handle; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    memory: MemoryStore,
    /// Counts on over every crash, so that an index names one operation for good (S2.9).
    ops: Arc<AtomicU64>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its rows and epochs, readable past every fault and without acquiring.
    #[must_use]
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// How many operations there have been.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.ops.load(Ordering::Acquire)
    }

    pub(super) fn next_index(&self) -> u64 {
        self.ops.fetch_add(1, Ordering::AcqRel) + 1
    }
}
