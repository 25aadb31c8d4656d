//! Taking the changes of a failed segment back.

use std::collections::VecDeque;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PersistentQueue;
use super::item::{Held, Item};
use super::layout::LayoutUndo;
use crate::error::BoxError;

/// What a segment did to a queue, newest last.
pub(super) struct Undo<T> {
    steps: Vec<Step>,
    pub(super) layout: LayoutUndo,
    of: std::marker::PhantomData<fn() -> T>,
}

enum Step {
    PushedBack,
    PushedFront,
    PoppedFront(Held),
    Removed(usize, Held),
    Replaced(usize, Held),
    Assigned(VecDeque<Held>),
    /// The newest of the taken came from the head; its return to the items is a step of its own.
    Took,
    Untook(Held),
    CommittedTakes(VecDeque<Held>),
}

impl<T> Default for Undo<T> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            layout: LayoutUndo::default(),
            of: std::marker::PhantomData,
        }
    }
}

impl<T> Undo<T> {
    pub(super) fn pushed_back(&mut self) {
        self.steps.push(Step::PushedBack);
    }

    pub(super) fn pushed_front(&mut self) {
        self.steps.push(Step::PushedFront);
    }

    pub(super) fn popped_front(&mut self, held: Held) {
        self.steps.push(Step::PoppedFront(held));
    }

    pub(super) fn removed(&mut self, index: usize, held: Held) {
        self.steps.push(Step::Removed(index, held));
    }

    pub(super) fn replaced(&mut self, index: usize, held: Held) {
        self.steps.push(Step::Replaced(index, held));
    }

    pub(super) fn assigned(&mut self, before: VecDeque<Held>) {
        self.steps.push(Step::Assigned(before));
    }

    pub(super) fn took(&mut self) {
        self.steps.push(Step::Took);
    }

    pub(super) fn untook(&mut self, held: Held) {
        self.steps.push(Step::Untook(held));
    }

    pub(super) fn committed_takes(&mut self, taken: VecDeque<Held>) {
        self.steps.push(Step::CommittedTakes(taken));
    }

    pub(super) fn forget(&mut self) {
        self.steps.clear();
        self.layout.forget();
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// What was removed is made again of its text: its type may not accept what it wrote itself.
    pub(super) fn undo_all(&mut self) -> Result<(), BoxError> {
        while let Some(step) = self.undo.steps.pop() {
            match step {
                Step::PushedBack => {
                    self.items.pop_back();
                }
                Step::PushedFront => {
                    self.items.pop_front();
                }
                Step::PoppedFront(held) => {
                    self.items.push_front(Item::returned(held)?);
                }
                Step::Removed(index, held) => {
                    self.items.insert(index, Item::returned(held)?);
                }
                Step::Replaced(index, held) => {
                    let item = Item::returned(held)?;
                    if let Some(slot) = self.items.get_mut(index) {
                        *slot = item;
                    }
                }
                Step::Assigned(before) => {
                    let before = before.into_iter().map(Item::returned);
                    self.items = before.collect::<Result<_, _>>()?;
                }
                Step::Took => {
                    self.taken.pop_back();
                }
                Step::Untook(held) => self.taken.push_back(held),
                Step::CommittedTakes(taken) => self.taken = taken,
            }
        }
        self.undo.layout.restore(&mut self.layout);
        Ok(())
    }
}
