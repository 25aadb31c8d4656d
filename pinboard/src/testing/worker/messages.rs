//! Control messages (W5).

use std::sync::Arc;

use pinned_wire::registry::ControlMessage;

use super::InstanceKey;
use super::state::{Now, State};

/// Applies messages in order, and remembers those of the leading run that applied, to confirm them (W5.2).
pub(super) fn apply(
    state: &mut State,
    messages: &[ControlMessage],
    namespaces: &[Arc<str>],
    now: Now,
) {
    let mut run = true;
    for message in messages {
        let (applied, id) = match message {
            ControlMessage::WindDown(order) => {
                let ns = match (&order.ns, namespaces) {
                    (Some(ns), _) => namespaces.iter().find(|own| ***own == **ns),
                    (None, [only]) => Some(only),
                    (None, _) => None,
                };
                let applied = ns.is_some_and(|ns| {
                    let key = InstanceKey::new(Arc::clone(ns), order.id.as_str());
                    // One that is not resident is no error (W5.7).
                    if let Some(record) = state.records.get_mut(&key) {
                        let left = order.deadline.0;
                        let at = left.map(|left| pinned_domain::saturating_add(now.own, left));
                        record.operator = at;
                    }
                    true
                });
                (applied, &order.msg_id)
            }
            _ => (false, &None),
        };
        run &= applied;
        if run && let Some(id) = id {
            state.acks.insert(id.clone());
        }
    }
}
