//! `POST /registry/release`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Registry, RegistryError, Sessions, covers_session, entry};
use crate::passport::Principal;
use crate::store::{Event, EventKind, Release, SessionId, SessionView};

impl Sessions {
    /// Takes placements back; how many were freed (P2.8). What another session holds, or the same under another epoch, stays.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Forbidden`] when the caller's claims do not cover a session that is named, or a namespace of one that does not
    /// live; nothing is freed then. [`RegistryError::Store`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Some rows may be free.
    pub async fn release(
        &self,
        caller: &Principal,
        releases: Vec<Release>,
    ) -> Result<u64, RegistryError> {
        let sessions = self.sessions_named(&releases).await?;
        for release in &releases {
            let covered = match sessions.get(&release.session).and_then(Option::as_ref) {
                Some(view) => covers_session(&caller.grants, &view.record),
                // It has ended; its rows may be there yet.
                None => caller.grants.covers_namespace(&release.key.ns),
            };
            if !covered {
                return Err(RegistryError::Forbidden);
            }
        }
        if releases.is_empty() {
            return Ok(0);
        }
        let released = self.registry.store.release(&releases).await?;
        self.tell_released(&sessions, &releases, released);
        Ok(released)
    }

    async fn sessions_named(
        &self,
        releases: &[Release],
    ) -> Result<BTreeMap<SessionId, Option<Arc<SessionView>>>, RegistryError> {
        let registry = &self.registry;
        let mut sessions: BTreeMap<_, _> = releases
            .iter()
            .map(|release| {
                (
                    release.session.clone(),
                    registry.known_session(&release.session),
                )
            })
            .collect();
        let unknown = |(id, view): (&SessionId, &Option<_>)| {
            view.is_none() && !registry.workers.has_ended(id)
        };
        if sessions.iter().any(unknown) {
            registry.workers.refresh_now().await?;
            for (id, view) in &mut sessions {
                *view = registry.known_session(id);
            }
        }
        Ok(sessions)
    }

    /// One entry for a single row, one for each namespace of a list: a worker that drains must not push everything else out of
    /// the ring.
    fn tell_released(
        &self,
        sessions: &BTreeMap<SessionId, Option<Arc<SessionView>>>,
        releases: &[Release],
        released: u64,
    ) {
        if released == 0 {
            return;
        }
        let registry = &self.registry;
        if let [only] = releases {
            registry.events.record(Event {
                id: Some(Arc::clone(&only.key.id)),
                epoch: only.epoch,
                ..released_of(registry, sessions, only)
            });
            return;
        }
        let mut groups = BTreeMap::new();
        for release in releases {
            let group = groups
                .entry((&release.session, &release.key.ns))
                .or_insert((release, 0_u64));
            group.1 += 1;
        }
        let all = released == releases.len() as u64;
        for (release, ids) in groups.into_values() {
            let detail = if all {
                format!("{ids} ids")
            } else {
                // The store says how many it freed, and not which.
                format!(
                    "{ids} ids, {released} of {} in all were held",
                    releases.len()
                )
            };
            registry.events.record(Event {
                detail: Some(detail),
                ..released_of(registry, sessions, release)
            });
        }
    }
}

fn released_of(
    registry: &Registry,
    sessions: &BTreeMap<SessionId, Option<Arc<SessionView>>>,
    release: &Release,
) -> Event {
    let view = sessions.get(&release.session).and_then(Option::as_ref);
    Event {
        client_id: view.map(|view| view.record.client_id.as_str().into()),
        session_id: Some(release.session.as_str().into()),
        env: Some(Arc::clone(&release.key.env)),
        hostname: view.map(|view| Arc::clone(&view.record.hostname)),
        namespaces: vec![Arc::clone(&release.key.ns)],
        ..entry(registry, EventKind::Released)
    }
}
