//! What holds for every op and every value. The fuzz targets use it too.

use pinned::observable::Op;
use serde_json::Value;

/// An op does what it says, or nothing at all, and the same after it was sent.
pub(crate) fn applies_or_leaves_alone(op: &Op, mirror: &mut Value) {
    let before = mirror.clone();
    let applied = op.apply(mirror);
    if applied.is_err() {
        assert_eq!(*mirror, before, "{op:?}");
    }
    let sent = serde_json::to_string(op).expect("plain data");
    let received: Op = serde_json::from_str(&sent).expect("what was sent");
    assert_eq!(&received, op);
    let mut theirs = before;
    assert_eq!(received.apply(&mut theirs).is_ok(), applied.is_ok());
    assert_eq!(theirs, *mirror);
}
