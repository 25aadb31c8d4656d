//! One write: addressed, checked, made and put into the queue under one hold of the lock, and then delivered.

use std::sync::Arc;

use serde_json::Value;

use super::content::{Content, Found};
use super::delivery::{Ticket, emit, settle};
use super::error::ObservableError;
use super::group::Held;
use super::mount::{self, Draft, Landing};
use super::node::Node;
use super::op::OpKind;
use super::path::{Segment, joined};
use super::slot::{ListMut, ObjectMut};
use super::value;

type Result<T> = std::result::Result<T, ObservableError>;

/// What a write may use while it holds the lock.
pub(super) struct Session<'a> {
    pub(super) held: &'a mut Held,
    aside: &'a mut Aside,
}

/// What must not be dropped under the lock, because destructors of users may run with it.
#[derive(Default)]
struct Aside {
    nodes: Vec<Arc<Node>>,
    contents: Vec<Content>,
    ticket: Option<Arc<Ticket>>,
}

/// Where a write happens: the node that owns the place, and the place inside it.
pub(super) struct Site {
    pub(super) owner: Arc<Node>,
    pub(super) path: Vec<Segment>,
    /// The path as the caller addressed it.
    pub(super) shown: Vec<Segment>,
}

/// Runs one write on the tree of `node`. Panics of subscribers go on from here, when all of them have had the op.
pub(super) fn write<R>(
    node: &Arc<Node>,
    act: impl FnOnce(&mut Session<'_>) -> Result<R>,
) -> Result<R> {
    let mut aside = Aside::default();
    let result = node.locked(|held| {
        act(&mut Session {
            held,
            aside: &mut aside,
        })
    });
    if let Some(ticket) = aside.ticket.take() {
        settle(node, &ticket);
    }
    result
}

/// What an op carries.
pub(super) enum OpValue<'a> {
    None,
    Text(&'a str),
    /// What stands at this path of the owner.
    At(&'a [Segment]),
}

impl Session<'_> {
    /// Follows `path` from `node` through mounts to the node that owns what stands there, and which therefore writes.
    pub(super) fn resolve(&mut self, node: &Arc<Node>, path: &[Segment]) -> Result<Site> {
        let mut owner = node.clone();
        let mut from = 0;
        loop {
            let next = {
                let state = owner.state(self.held);
                let place = state.content.approach(&path[from..]);
                let within = |error: ObservableError| error.within(&path[..from]);
                match place.map_err(within)? {
                    (Content::Mount(mount), used) => Some((mount.clone(), used)),
                    (content, used) => {
                        let rest = &path[from + used..];
                        Found::of(content)
                            .descend(rest)
                            .map_err(|error| error.within(&path[..from + used]))?;
                        None
                    }
                }
            };
            let Some((mount, used)) = next else {
                // Its parent may let go of it before the write has ended.
                self.aside.nodes.push(owner.clone());
                return Ok(Site {
                    owner,
                    path: path[from..].to_vec(),
                    shown: path.to_vec(),
                });
            };
            from += used;
            self.aside.nodes.push(mount.node.clone());
            if mount.read_only {
                return Err(ObservableError::ReadOnly {
                    path: path[..from].to_vec(),
                });
            }
            owner = mount.node;
        }
    }

    /// Shows what stands at the site.
    pub(super) fn look<R>(
        &self,
        site: &Site,
        see: impl FnOnce(Found<'_>, &Held) -> Result<R>,
    ) -> Result<R> {
        let state = site.owner.state(self.held);
        see(state.content.at(&site.path)?, self.held)
    }

    /// Fails unless one of `kinds` stands at the site.
    pub(super) fn expect(&self, site: &Site, kinds: &[&str], expected: &'static str) -> Result<()> {
        self.look(site, |found, _| match kinds.contains(&found.kind()) {
            true => Ok(()),
            false => Err(found.misfit(&site.shown, expected)),
        })
    }

    /// Checks the mounts of what is about to be written.
    pub(super) fn admit(&mut self, site: &Site, landings: &[Landing<'_>]) -> Result<()> {
        if landings.iter().all(|landing| !landing.draft.has_mounts()) {
            return Ok(());
        }
        let ancestors = site.owner.ancestors(self.held);
        let result = mount::check(self.held, &site.owner, &ancestors, landings);
        self.aside.nodes.extend(ancestors);
        result
    }

    /// Replaces the whole content of the owner.
    pub(super) fn replace_whole(&mut self, site: &Site, draft: &mut Draft) {
        let content = draft.take();
        let old = std::mem::replace(&mut site.owner.state(self.held).content, content);
        mount::detach(self.held, &old);
        self.aside.contents.push(old);
        mount::attach(
            self.held,
            &site.owner,
            &site.owner.state(self.held).content,
            &[],
        );
    }

    /// Puts `draft` in the place of the element `index` of the list at the site.
    pub(super) fn set_item(&mut self, site: &Site, index: usize, draft: &mut Draft) -> Result<()> {
        let mut state = site.owner.state(self.held);
        let mut list = state.content.list_mut(&site.path, draft.has_mounts())?;
        let old = list.replace(index, draft.take(), self.held);
        drop(state);
        self.replaced(site, index.into(), old);
        Ok(())
    }

    /// Inserts `draft` before the element `index` of the list at the site, or at its end.
    pub(super) fn insert_item(
        &mut self,
        site: &Site,
        index: usize,
        draft: &mut Draft,
    ) -> Result<()> {
        let mut state = site.owner.state(self.held);
        let mut list = state.content.list_mut(&site.path, draft.has_mounts())?;
        list.insert(index, draft.take(), self.held);
        if let ListMut::Mixed(items) = list {
            mount::shift(self.held, items, index + 1, site.path.len());
        }
        drop(state);
        self.replaced(site, index.into(), None);
        Ok(())
    }

    /// Puts `draft` under `key` into the object at the site.
    pub(super) fn set_entry(&mut self, site: &Site, key: &str, draft: &mut Draft) -> Result<()> {
        let mut state = site.owner.state(self.held);
        let mut object = state.content.object_mut(&site.path, draft.has_mounts())?;
        let old = object.insert(key.to_owned(), draft.take(), self.held);
        drop(state);
        self.replaced(site, key.into(), old);
        Ok(())
    }

    /// Takes an element out of the container at the site, and returns it as a plain value.
    pub(super) fn take_out(&mut self, site: &Site, segment: &Segment) -> Result<Option<Value>> {
        let mut state = site.owner.state(self.held);
        let old = match segment {
            Segment::Index(index) => {
                let mut list = state.content.list_mut(&site.path, false)?;
                let old = list.remove(*index);
                if let ListMut::Mixed(items) = list {
                    mount::shift(self.held, items, *index, site.path.len());
                }
                old
            }
            Segment::Key(key) => state.content.object_mut(&site.path, false)?.remove(key),
        };
        let Some(mut old) = old else { return Ok(None) };
        if !old.is_plain() {
            mount::detach(self.held, &old);
            state.content.collapse(&site.path);
        }
        let value = old.take_value(self.held);
        drop(state);
        self.aside.contents.push(old);
        Ok(Some(value))
    }

    /// Links what now stands at `segment` of the container at the site, and unlinks what stood there.
    fn replaced(&mut self, site: &Site, segment: Segment, old: Option<Content>) {
        let mut state = site.owner.state(self.held);
        if let Some(old) = old {
            if !old.is_plain() {
                mount::detach(self.held, &old);
                state.content.collapse(&site.path);
            }
            self.aside.contents.push(old);
        }
        let at = joined(&site.path, segment);
        if let Ok(Found::Content(content)) = state.content.at(&at) {
            mount::attach(self.held, &site.owner, content, &at);
        }
    }

    /// Empties the container at the site.
    pub(super) fn empty(&mut self, site: &Site) -> Result<()> {
        let mut state = site.owner.state(self.held);
        let mut old = Vec::new();
        if state.content.at(&site.path)?.kind() == value::LIST {
            match state.content.list_mut(&site.path, false)? {
                ListMut::Plain(items) => items.clear(),
                ListMut::Mixed(items) => old.append(items),
            }
        } else {
            match state.content.object_mut(&site.path, false)? {
                ObjectMut::Plain(entries) => entries.clear(),
                ObjectMut::Mixed(entries) => old.extend(std::mem::take(entries).into_values()),
            }
        }
        for content in &old {
            mount::detach(self.held, content);
        }
        state.content.collapse(&site.path);
        drop(state);
        self.aside.contents.append(&mut old);
        Ok(())
    }

    /// Appends to the text at the site.
    pub(super) fn append_text(&mut self, site: &Site, suffix: &str) -> Result<()> {
        let mut state = site.owner.state(self.held);
        state.content.text_mut(&site.path)?.push_str(suffix);
        Ok(())
    }

    /// Puts the op into the queue. `value` is taken from the owner as it is now, if anybody listens.
    pub(super) fn emit(
        &mut self,
        site: &Site,
        kind: OpKind,
        path: Vec<Segment>,
        value: OpValue<'_>,
    ) {
        let owner = &site.owner;
        let snapshot = |held: &Held| match value {
            OpValue::None => None,
            OpValue::Text(text) => Some(Value::from(text)),
            OpValue::At(path) => {
                let state = owner.state(held);
                state
                    .content
                    .at(path)
                    .ok()
                    .map(|found| found.snapshot(held))
            }
        };
        self.aside.ticket = emit(
            self.held,
            owner,
            kind,
            path,
            snapshot,
            &mut self.aside.nodes,
        );
    }
}
