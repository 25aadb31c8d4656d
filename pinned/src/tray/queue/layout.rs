//! Which entries stand in the tray's own row, and which in rows of their own.
//!
//! A short queue stands in the row whole, as T2.4 has it. A row is written whole for every change, so a long one keeps
//! only its ends there, and what lies between in chunks: rows that are written once, when the tail has grown, and
//! removed once, when the head has come to them (docs/decisions.md, "Long queues").

use std::collections::VecDeque;

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

/// What a segment did to a layout.
#[derive(Debug, Default)]
pub(super) struct LayoutUndo {
    ends: Option<(usize, usize)>,
    chunks: Option<(u64, VecDeque<usize>)>,
    /// Chunks that were written or became useless, in order.
    pub(super) written: Vec<u64>,
    pub(super) dropped: Vec<u64>,
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

    /// Where the entries of chunk `number` begin, and how many they are.
    pub(super) fn place(&self, number: u64) -> Option<(usize, usize)> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let len = *self.lens.get(index)?;
        let before = self.head + self.lens.iter().take(index).sum::<usize>();
        Some((before, len))
    }

    pub(super) fn pushed_back(&mut self, undo: &mut LayoutUndo) {
        if self.lens.is_empty() {
            self.head += 1;
        } else {
            self.tail += 1;
        }
        self.settle(undo);
    }

    pub(super) fn pushed_front(&mut self, undo: &mut LayoutUndo) {
        self.head += 1;
        self.settle(undo);
    }

    /// The first entry was removed.
    pub(super) fn popped_front(&mut self, undo: &mut LayoutUndo) {
        if self.head == 0 {
            // Only in a row that was not written here.
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
        } else if index >= before - self.tail {
            self.tail -= 1;
        } else {
            return self.rebuild(len, undo);
        }
        self.settle(undo);
    }

    /// The entry at `index` of `len` was changed.
    pub(super) fn edited(&mut self, index: usize, len: usize, undo: &mut LayoutUndo) {
        if index >= self.head && index < len - self.tail {
            self.rebuild(len, undo);
        } else {
            self.settle(undo);
        }
    }

    /// Restores what holds of every layout after a change: an end is never longer than [`bounds`](Self::bounds) says,
    /// no chunk stands before an empty head, and there is no tail without chunks.
    ///
    /// A row that was read may hold more, as what was taken comes back to its head whole (T6.5), and is laid out at its
    /// first change.
    fn settle(&mut self, undo: &mut LayoutUndo) {
        while self.head == 0
            && let Some(&len) = self.lens.front()
        {
            undo.keep_chunks(self);
            undo.dropped.push(self.first);
            self.lens.pop_front();
            self.first += 1;
            self.head = len;
        }
        if self.lens.is_empty() {
            self.head += std::mem::take(&mut self.tail);
        }
        let (head, tail) = self.bounds();
        if self.head > head {
            return self.rebuild(self.len(), undo);
        }
        while self.tail > tail {
            undo.keep_chunks(self);
            undo.written.push(self.next());
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
        undo.keep_ends(self);
        undo.keep_chunks(self);
        undo.dropped.extend(self.first..self.next());
        self.first = self.next();
        self.lens.clear();
        if len <= WHOLE {
            (self.head, self.tail) = (len, 0);
            return;
        }
        let chunks = (len - CHUNK) / CHUNK;
        self.lens.extend(std::iter::repeat_n(CHUNK, chunks));
        undo.written.extend(self.first..self.next());
        self.head = CHUNK;
        self.tail = len - CHUNK - chunks * CHUNK;
    }
}
