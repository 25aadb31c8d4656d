//! Mounting: which observables a write brings in, whether it may, and the links between child and parent.

use std::sync::Arc;

use super::content::Content;
use super::error::ObservableError;
use super::group::Held;
use super::node::Node;
use super::path::Segment;
use super::tree::Tree;

/// A checked value that a write is about to put into a tree.
pub(super) struct Draft {
    content: Content,
    /// The observables in it, with their paths in it.
    mounts: Vec<(Vec<Segment>, Arc<Node>)>,
}

impl Draft {
    pub(super) fn new(tree: Tree) -> Result<Self, ObservableError> {
        let content = tree.into_content()?;
        let mut mounts = Vec::new();
        content.each_mount(&mut Vec::new(), &mut |mount, path| {
            mounts.push((path.to_vec(), mount.node.clone()));
        });
        Ok(Self { content, mounts })
    }

    /// The content for a node's whole value, which must not be an observable itself.
    pub(super) fn whole(tree: Tree) -> Result<Self, ObservableError> {
        let draft = Self::new(tree)?;
        match draft.content {
            Content::Mount(_) => Err(ObservableError::Wrapped { path: Vec::new() }),
            _ => Ok(draft),
        }
    }

    pub(super) fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Moves the content out, once all checks are done.
    pub(super) fn take(&mut self) -> Content {
        std::mem::replace(&mut self.content, Content::Plain(Arc::default()))
    }

    /// Brings the observables in it under the lock of `node`.
    pub(super) fn unite(&self, node: &Node) {
        for (_, mounted) in &self.mounts {
            node.unite(mounted);
        }
    }
}

/// One draft and where it will stand in the owner.
pub(super) struct Landing<'a> {
    pub(super) draft: &'a Draft,
    /// As the caller addressed it, for errors.
    pub(super) shown: Vec<Segment>,
    /// The place in the owner that this very draft overwrites, and so frees.
    pub(super) freed: Option<Vec<Segment>>,
}

/// Whether every observable in what lands may be mounted in `owner`, which `ancestors` hold. Nothing has changed yet.
pub(super) fn check(
    held: &Held,
    owner: &Arc<Node>,
    ancestors: &[Arc<Node>],
    landings: &[Landing<'_>],
) -> Result<(), ObservableError> {
    let mut seen: Vec<*const Node> = Vec::new();
    for landing in landings {
        for (inside, node) in &landing.draft.mounts {
            let path = || [&landing.shown[..], &inside[..]].concat();
            if seen.contains(&Arc::as_ptr(node)) {
                return Err(ObservableError::Repeated { path: path() });
            }
            seen.push(Arc::as_ptr(node));
            if std::iter::once(owner)
                .chain(ancestors)
                .any(|outer| Arc::ptr_eq(outer, node))
            {
                return Err(ObservableError::Cycle { path: path() });
            }
            let state = node.state(held);
            let Some(link) = state
                .link
                .as_ref()
                .filter(|link| link.parent.strong_count() > 0)
            else {
                continue;
            };
            let here = std::ptr::eq(link.parent.as_ptr(), Arc::as_ptr(owner));
            let freed = |freed: &Vec<Segment>| link.path.starts_with(freed);
            if !(here && landing.freed.as_ref().is_some_and(freed)) {
                return Err(ObservableError::Mounted { path: path() });
            }
        }
    }
    Ok(())
}

/// Links every observable in `content`, which now stands at `path` in `owner`.
pub(super) fn attach(held: &Held, owner: &Arc<Node>, content: &Content, path: &[Segment]) {
    content.each_mount(&mut path.to_vec(), &mut |mount, at| {
        mount.node.state(held).mount(owner, at.to_vec());
    });
}

/// Ends the links of every observable in `content`, which stands in its owner no more.
pub(super) fn detach(held: &Held, content: &Content) {
    content.each_mount(&mut Vec::new(), &mut |mount, _| {
        mount.node.state(held).unmount();
    });
}

/// Tells the observables in `items` their places again, from position `from` of the list at depth `depth` of the owner.
pub(super) fn shift(held: &Held, items: &[Content], from: usize, depth: usize) {
    for (index, item) in items.iter().enumerate().skip(from) {
        item.each_mount(&mut Vec::new(), &mut |mount, _| {
            if let Some(link) = &mut mount.node.state(held).link {
                link.path[depth] = Segment::Index(index);
            }
        });
    }
}
