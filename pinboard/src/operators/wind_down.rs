//! `POST /registry/wind_down`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use pinned_wire::registry::Queued;

use super::{Operators, bodies};
use crate::passport::Principal;
use crate::sessions::{RegistryError, entry, task_failed};
use crate::store::{Event, EventKind, Fence, MessageBody, PlacementKey, SessionId, StoreError};

/// How often a row that moves is looked at again.
const ATTEMPTS: usize = 5;
/// How many workers are told at once.
const WORKERS_AT_ONCE: usize = 8;
/// How many rows of one worker are fenced at once.
const FENCES_AT_ONCE: usize = 32;

/// One order, for any number of ids.
#[derive(Clone, Copy)]
struct Order {
    /// What is left until the holder must have let go, a lease TTL at least; `None` revokes.
    deadline: Option<Duration>,
    ttl: Duration,
}

impl Order {
    fn message(&self, key: &PlacementKey) -> MessageBody {
        MessageBody {
            key: key.clone(),
            deadline: self.deadline,
        }
    }

    /// From the deadline on requests are refused, for a lease TTL: by then the holder, who was told with its first ack after the
    /// order, has let go, or has had no ack and no lease, or the order went past it.
    fn fence(&self) -> Option<Fence> {
        self.deadline.map(|starts_in| Fence {
            starts_in,
            ends_in: starts_in + self.ttl,
        })
    }
}

impl Operators {
    /// Asks the holder of an id, or those of all ids of a namespace, to let go; or takes that back (P3.5).
    ///
    /// # Errors
    ///
    /// [`RegistryError::Forbidden`] when the caller's claims do not cover the namespace; [`RegistryError::Unavailable`] when an id
    /// moves from worker to worker all the while; [`RegistryError::Store`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Some holders may have been asked. An order for a whole namespace goes on to its end.
    pub async fn wind_down(
        self: &Arc<Self>,
        caller: &Principal,
        given: bodies::WindDown,
    ) -> Result<Queued, RegistryError> {
        let grants = &caller.grants;
        if !grants.covers_namespace(&given.namespace) || !grants.covers_env(&given.env) {
            return Err(RegistryError::Forbidden);
        }
        let order = Order {
            deadline: given.deadline.map(|given| self.at_least_a_lease(given)),
            ttl: self.registry.settings.lease_ttl,
        };
        let queued = match &given.id {
            Some(id) => {
                let key = PlacementKey::new(
                    Arc::clone(&given.env),
                    Arc::clone(&given.namespace),
                    Arc::clone(id),
                );
                Queued::One(self.order_one(&key, order).await?)
            }
            None => {
                let (operators, given) = (Arc::clone(self), given.clone());
                let all = self
                    .registry
                    .domain
                    .spawn(async move { operators.order_all(&given, order).await });
                Queued::Many(all.await.unwrap_or_else(|error| Err(task_failed(&error)))?)
            }
        };
        self.tell_wind_down(caller, &given, order, queued);
        Ok(queued)
    }

    /// Whether somebody holds the id, and will be told.
    async fn order_one(&self, key: &PlacementKey, order: Order) -> Result<bool, RegistryError> {
        for _ in 0..ATTEMPTS {
            let tried = match order.fence() {
                Some(fence) => self.ask_one(key, order, fence).await?,
                None => self.revoke_one(key, order).await?,
            };
            if let Some(queued) = tried {
                return Ok(queued);
            }
        }
        Err(RegistryError::Unavailable(
            "the id is moving, try again".to_owned(),
        ))
    }

    /// Tells the holder first, and fences the row then: a fence whose holder was not told would let the row be taken from a holder
    /// that is alive. `None` when the row has moved meanwhile.
    async fn ask_one(
        &self,
        key: &PlacementKey,
        order: Order,
        fence: Fence,
    ) -> Result<Option<bool>, StoreError> {
        let store = &self.registry.store;
        let Some(row) = store.row(key).await? else {
            return Ok(Some(false));
        };
        if !store
            .queue_messages(&row.session, vec![order.message(key)])
            .await?
        {
            return self.nobody_or_moved(key, &row.session).await;
        }
        match store.fence(key, Some(fence)).await? {
            None => Ok(Some(false)),
            Some(fenced) if fenced.session == row.session && fenced.epoch == row.epoch => {
                Ok(Some(true))
            }
            // Also when the same worker has it anew: it may have been told before, when it had nothing to let go of.
            Some(_) => {
                store.fence(key, None).await?;
                Ok(None)
            }
        }
    }

    async fn revoke_one(
        &self,
        key: &PlacementKey,
        order: Order,
    ) -> Result<Option<bool>, StoreError> {
        let store = &self.registry.store;
        let Some(row) = store.fence(key, None).await? else {
            return Ok(Some(false));
        };
        if store
            .queue_messages(&row.session, vec![order.message(key)])
            .await?
        {
            return Ok(Some(true));
        }
        self.nobody_or_moved(key, &row.session).await
    }

    /// What a row is whose holder was found dead: nobody's, unless it has another holder by now.
    async fn nobody_or_moved(
        &self,
        key: &PlacementKey,
        dead: &SessionId,
    ) -> Result<Option<bool>, StoreError> {
        let row = self.registry.store.row(key).await?;
        Ok(match row {
            Some(row) if row.session != *dead => None,
            _ => Some(false),
        })
    }

    /// How many ids of the namespace somebody holds, who will be told.
    async fn order_all(
        &self,
        given: &bodies::WindDown,
        order: Order,
    ) -> Result<u64, RegistryError> {
        let mut holders = self.registry.live_sessions().await?;
        holders.retain(|view| {
            view.record.serves(&given.namespace)
                && **view.record.env_of(&given.namespace) == *given.env
        });
        stream::iter(holders)
            .map(|view| async move { self.order_holder(&view.id, given, order).await })
            .buffer_unordered(WORKERS_AT_ONCE)
            .try_fold(0_u64, |sum, queued| async move { Ok(sum + queued) })
            .await
    }

    async fn order_holder(
        &self,
        holder: &SessionId,
        given: &bodies::WindDown,
        order: Order,
    ) -> Result<u64, RegistryError> {
        let store = &self.registry.store;
        let (mut seen, mut queued, mut cursor) = (HashSet::new(), 0, 0);
        loop {
            let (ids, next) = store
                .held_by(holder, &given.env, &given.namespace, cursor)
                .await?;
            let keys: Vec<_> = ids
                .into_iter()
                .filter(|id| seen.insert(Arc::clone(id)))
                .map(|id| {
                    PlacementKey::new(Arc::clone(&given.env), Arc::clone(&given.namespace), id)
                })
                .collect();
            queued += self.order_page(holder, &keys, order).await?;
            if next == 0 {
                return Ok(queued);
            }
            cursor = next;
        }
    }

    async fn order_page(
        &self,
        holder: &SessionId,
        keys: &[PlacementKey],
        order: Order,
    ) -> Result<u64, RegistryError> {
        let store = &self.registry.store;
        if keys.is_empty() {
            return Ok(0);
        }
        let messages: Vec<_> = keys.iter().map(|key| order.message(key)).collect();
        let Some(fence) = order.fence() else {
            // The other way round, for the reason that `ask_one` gives.
            let lifted = self.fence_page(holder, keys, None).await?;
            let told = store.queue_messages(holder, messages).await?;
            return Ok(
                if told { lifted.held } else { 0 } + self.order_moved(lifted.moved, order).await?
            );
        };
        if !store.queue_messages(holder, messages).await? {
            // It has died since; what it held is nobody's, or was moved by a worker that has registered again.
            return self.order_moved(keys.to_vec(), order).await;
        }
        let fenced = self.fence_page(holder, keys, Some(fence)).await?;
        // Told once more: some of these it may have let go of and got anew in between, after it was told.
        let messages: Vec<_> = keys.iter().map(|key| order.message(key)).collect();
        if !store.queue_messages(holder, messages).await? {
            return self.order_moved(keys.to_vec(), order).await;
        }
        Ok(fenced.held + self.order_moved(fenced.moved, order).await?)
    }

    async fn fence_page(
        &self,
        holder: &SessionId,
        keys: &[PlacementKey],
        fence: Option<Fence>,
    ) -> Result<Fenced, StoreError> {
        let store = &self.registry.store;
        let mut rows = stream::iter(keys.to_vec())
            .map(|key| async move {
                let row = store.fence(&key, fence).await?;
                let elsewhere = row.as_ref().is_some_and(|row| row.session != *holder);
                if elsewhere && fence.is_some() {
                    // Its holder has not been told.
                    store.fence(&key, None).await?;
                }
                Ok::<_, StoreError>((key, row.is_some(), elsewhere))
            })
            .buffer_unordered(FENCES_AT_ONCE);
        let mut fenced = Fenced::default();
        while let Some((key, is_held, elsewhere)) = rows.try_next().await? {
            if elsewhere {
                fenced.moved.push(key);
            } else if is_held {
                fenced.held += 1;
            }
        }
        Ok(fenced)
    }

    async fn order_moved(
        &self,
        keys: Vec<PlacementKey>,
        order: Order,
    ) -> Result<u64, RegistryError> {
        let mut orders = stream::iter(keys)
            .map(|key| async move { self.order_one(&key, order).await })
            .buffer_unordered(FENCES_AT_ONCE);
        let mut queued = 0;
        while let Some(held) = orders.try_next().await? {
            queued += u64::from(held);
        }
        Ok(queued)
    }

    fn tell_wind_down(
        &self,
        caller: &Principal,
        given: &bodies::WindDown,
        order: Order,
        queued: Queued,
    ) {
        let ids = match queued {
            Queued::One(held) => u64::from(held),
            Queued::Many(ids) => ids,
        };
        tracing::info!(
            env = &*given.env,
            namespace = &*given.namespace,
            id = given.id.as_deref(),
            seconds = order.deadline.map(|left| left.as_secs_f64()),
            ids,
            by = caller.account.sub,
            "a wind-down"
        );
        let what = match order.deadline {
            None => "revoked".to_owned(),
            Some(left) => format!("within {} s", left.as_secs_f64()),
        };
        self.registry.events.record(Event {
            env: Some(Arc::clone(&given.env)),
            namespaces: vec![Arc::clone(&given.namespace)],
            id: given.id.clone(),
            detail: Some(format!("{what}, {ids} held")),
            ..entry(&self.registry, EventKind::WindDown)
        });
    }
}

/// What became of a page of rows.
#[derive(Default)]
struct Fenced {
    /// How many their holder still has.
    held: u64,
    /// Those that somebody else has by now.
    moved: Vec<PlacementKey>,
}
