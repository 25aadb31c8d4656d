//! Which entries stand in the tray's own row, and which in rows of their own.
//!
//! A short queue stands in the row whole, as T2.4 has it. A row is written whole for every change, so a long one keeps
//! only its ends there, and what lies between in chunks: rows that are written once, when the tail has grown, and
//! removed once, when the head has come to them (docs/decisions.md, "Long queues").

use std::collections::VecDeque;
use std::ops::Range;

/// How many entries a chunk has when it is written.
pub(super) const CHUNK: usize = 32;
/// The longest queue that stands in the row whole.
pub(super) const WHOLE: usize = 2 * CHUNK;

/// `head` entries, then the chunks, then `tail` entries. Without chunks everything is head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) head: usize,
    /// The number of the first chunk, or of the next one to be written.
    pub(super) first: u64,
    pub(super) lens: VecDeque<usize>,
    pub(super) tail: usize,
}

/// What a layout was before a segment.
#[derive(Debug, Default)]
pub(super) struct LayoutUndo {
    ends: Option<(usize, usize)>,
    /// The stored ones, once a chunk came or went.
    chunks: Option<(u64, VecDeque<usize>)>,
}

impl LayoutUndo {
    pub(super) fn keep_ends(&mut self, layout: &Layout) {
        self.ends.get_or_insert((layout.head, layout.tail));
    }

    fn keep_chunks(&mut self, layout: &Layout) {
        if self.chunks.is_none() {
            self.chunks = Some((layout.first, layout.lens.clone()));
        }
    }

    /// The chunks that came, and those stored that went. One that came and went within the segment is neither.
    pub(super) fn changed(&self, layout: &Layout) -> (Range<u64>, Range<u64>) {
        let Some((first, lens)) = &self.chunks else {
            return (0..0, 0..0);
        };
        // Numbers only grow: from here on they are the segment's own.
        let fresh = first + lens.len() as u64;
        let written = layout.first.max(fresh)..layout.next();
        let dropped = *first..layout.first.min(fresh);
        (written, dropped)
    }

    pub(super) fn restore(&mut self, layout: &mut Layout) {
        if let Some((head, tail)) = self.ends.take() {
            (layout.head, layout.tail) = (head, tail);
        }
        if let Some((first, lens)) = self.chunks.take() {
            (layout.first, layout.lens) = (first, lens);
        }
        self.forget();
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Layout {
    pub(super) fn next(&self) -> u64 {
        self.first + self.lens.len() as u64
    }

    /// Where the entries of each chunk from `number` on begin, and how many they are.
    pub(super) fn chunks_from(&self, number: u64) -> impl Iterator<Item = (usize, usize)> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let mut begin = self.head + self.lens.iter().take(skipped).sum::<usize>();
        self.lens.iter().skip(skipped).map(move |&len| {
            begin += len;
            (begin - len, len)
        })
    }

    pub(super) fn pushed_back(&mut self, undo: &mut LayoutUndo) {
        if self.lens.is_empty() {
            self.head += 1;
        } else {
            self.tail += 1;
        }
        self.settle(undo);
    }

    pub(super) fn pushed_front(&mut self, count: usize, undo: &mut LayoutUndo) {
        self.head += count;
        self.settle(undo);
    }

    /// The first entry was removed.
    pub(super) fn popped_front(&mut self, undo: &mut LayoutUndo) {
        if self.head == 0 {
            // A row that was written here has a head wherever it has chunks.
            self.settle(undo);
        }
        self.head = self.head.saturating_sub(1);
        self.settle(undo);
    }

    /// An entry was removed at `index`; `len` are left.
    pub(super) fn removed(&mut self, index: usize, len: usize, undo: &mut LayoutUndo) {
        let before = len + 1;
        if index < self.head {
            self.head -= 1;
            self.settle(undo);
        } else if index >= before - self.tail {
            self.tail -= 1;
            self.settle(undo);
        } else {
            self.rebuild(len, undo);
        }
    }

    /// The entry at `index` of `len` was changed.
    pub(super) fn edited(&mut self, index: usize, len: usize, undo: &mut LayoutUndo) {
        if index < self.head || index >= len - self.tail {
            self.settle(undo);
        } else {
            self.rebuild(len, undo);
        }
    }

    /// Restores what holds of every layout after a change: neither end is longer than [`bounds`](Self::bounds) says, the
    /// head is not empty while there are chunks, and there is no tail without them.
    ///
    /// A row that was read may hold more, as what was taken comes back to its head whole (T6.5), and is laid out at its
    /// first change. The ends of before are in `undo` already.
    fn settle(&mut self, undo: &mut LayoutUndo) {
        while self.head == 0
            && let Some(&len) = self.lens.front()
        {
            undo.keep_chunks(self);
            self.lens.pop_front();
            self.first += 1;
            self.head = len;
        }
        if self.lens.is_empty() {
            self.head += std::mem::take(&mut self.tail);
        }
        let (head, tail) = self.bounds();
        if self.head > head {
            self.rebuild(self.len(), undo);
            return;
        }
        while self.tail > tail {
            undo.keep_chunks(self);
            self.lens.push_back(CHUNK);
            self.tail -= CHUNK;
        }
    }

    /// The longest that head and tail may be.
    pub(super) fn bounds(&self) -> (usize, usize) {
        if self.lens.is_empty() {
            (WHOLE, 0)
        } else {
            // Room for entries that come back to the head, as a rebuild writes everything.
            (2 * WHOLE, CHUNK)
        }
    }

    /// How many entries it lays out.
    pub(super) fn len(&self) -> usize {
        self.head + self.lens.iter().sum::<usize>() + self.tail
    }

    /// Lays `len` entries out anew, in chunks with numbers that were never used: until the row refers to them, the old
    /// ones still stand.
    pub(super) fn rebuild(&mut self, len: usize, undo: &mut LayoutUndo) {
        undo.keep_chunks(self);
        self.first = self.next();
        self.lens.clear();
        if len <= WHOLE {
            (self.head, self.tail) = (len, 0);
            return;
        }
        let chunks = (len - CHUNK) / CHUNK;
        self.lens.extend(std::iter::repeat_n(CHUNK, chunks));
        self.head = CHUNK;
        self.tail = len - CHUNK - chunks * CHUNK;
    }
}
