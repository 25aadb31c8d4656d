//! Reading: always under one hold of the lock, and never with a user's code inside it.

use std::sync::Arc;

use serde_json::Value;

use super::content::{Content, Found};
use super::error::ObservableError;
use super::group::Held;
use super::node::Node;
use super::path::Segment;

type Result<T> = std::result::Result<T, ObservableError>;

/// The node's whole value.
pub(super) fn snapshot(node: &Node) -> Value {
    node.locked(|held| node.state(held).content.snapshot(held))
}

/// Shows what stands at `path`. `see` is ours: it runs under the lock.
pub(super) fn look<R>(
    node: &Arc<Node>,
    path: &[Segment],
    see: impl FnOnce(Found<'_>, &Held) -> Result<R>,
) -> Result<R> {
    approach(node, path, |content, rest, held| {
        see(Found::of(content).descend(rest)?, held).map_err(|error| error.within(rest))
    })
}

/// What a reader may keep without holding up anybody.
enum Kept {
    /// The value shared with the tree, and the rest of the path in it.
    Shared(Arc<Value>, Vec<Segment>),
    Copied(Value),
}

/// Gives `read` the value at `path` after the lock is released: shared with the tree, and not copied, where nothing is
/// mounted in it.
pub(super) fn with<R>(
    node: &Arc<Node>,
    path: &[Segment],
    read: impl FnOnce(&Value) -> R,
) -> Result<R> {
    let kept = approach(node, path, |content, rest, held| match content {
        Content::Plain(value) => Ok(Kept::Shared(value.clone(), rest.to_vec())),
        mixed => Ok(Kept::Copied(mixed.snapshot(held))),
    })?;
    match &kept {
        Kept::Copied(value) => Ok(read(value)),
        Kept::Shared(root, rest) => match Found::Value(root).descend(rest) {
            Ok(Found::Value(value)) => Ok(read(value)),
            Ok(Found::Content(_)) => Err(ObservableError::NotFound {
                path: path.to_vec(),
            }),
            Err(error) => Err(error.within(&path[..path.len() - rest.len()])),
        },
    }
}

/// As [`with`], of the node's whole value, which is always there.
pub(super) fn with_whole<R>(node: &Node, read: impl FnOnce(&Value) -> R) -> R {
    let value = node.locked(|held| match &node.state(held).content {
        Content::Plain(value) => value.clone(),
        mixed => Arc::new(mixed.snapshot(held)),
    });
    read(&value)
}

/// Shows what stands at `path`, or the first plain content on the way with the rest of the path.
fn approach<R>(
    node: &Arc<Node>,
    path: &[Segment],
    see: impl FnOnce(&Content, &[Segment], &Held) -> Result<R>,
) -> Result<R> {
    // Dropped after the lock is released: a mounted node may go with the last reference to it.
    let mut passed: Vec<Arc<Node>> = Vec::new();
    node.locked(|held| {
        let mut from = 0;
        loop {
            let next = {
                let state = passed.last().unwrap_or(node).state(held);
                let (content, used) = state
                    .content
                    .approach(&path[from..])
                    .map_err(|error| error.within(&path[..from]))?;
                from += used;
                match content {
                    Content::Mount(mount) => mount.node.clone(),
                    content => {
                        return see(content, &path[from..], held)
                            .map_err(|error| error.within(&path[..from]));
                    }
                }
            };
            passed.push(next);
        }
    })
}
