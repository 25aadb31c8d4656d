//! What a node reads of the sessions: the whole list, and what has changed since (P4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::scene::{Scene, update};
use super::verdict::{Verdict, counts_down, holds, same};
use crate::store::{
    Drain, EndMode, Heartbeat, PlacementKey, RegistryStore, SessionId, SessionRecord, SessionView,
};

pub(super) async fn checks(scene: &Scene) {
    a_session_is_seen_as_it_registered(scene).await;
    a_reader_learns_of_each_change(scene).await;
    orders_are_seen(scene).await;
    addresses_move(scene).await;
    every_namespace_is_remembered(scene).await;
    readers_do_not_disturb_one_another(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    let rule = "P4.1 (a reader learns of a session that expired)";
    let worker = scene.worker(&[scene.ns()]).await;
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    holds(rule, "it is seen", reader.sees(&worker.session));
    scene.wait_out(scene.options.lease_ttl).await;
    reader.read(&*scene.store, rule).await;
    holds(rule, "it is gone", !reader.sees(&worker.session));
}

/// Keeps the list as a node does.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) version: u64,
    pub(super) sessions: BTreeMap<SessionId, SessionView>,
    pub(super) namespaces: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Reader {
    pub(super) async fn read(&mut self, store: &dyn RegistryStore, rule: &str) {
        let changes = store.sessions_since(self.version).await.holds(rule);
        if self.version == 0 {
            holds(rule, "version 0 gives the whole list", changes.complete);
        }
        if changes.complete {
            self.sessions.clear();
            holds(
                rule,
                "the whole list comes with the namespaces",
                changes.namespaces.is_some(),
            );
        }
        for view in changes.changed {
            self.sessions.insert(view.id.clone(), view);
        }
        for id in changes.ended {
            self.sessions.remove(&id);
        }
        if let Some(namespaces) = changes.namespaces {
            self.namespaces = namespaces;
        }
        self.version = changes.version;
    }

    pub(super) fn sees(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    fn view(&self, session: &SessionId, rule: &str) -> &SessionView {
        match self.sessions.get(session) {
            Some(view) => view,
            None => panic!("{rule}: expected to see {session}"),
        }
    }
}

async fn a_session_is_seen_as_it_registered(scene: &Scene) {
    let rule = "P3.1 (a session is seen as it registered)";
    let mut record = scene.record(&[scene.ns(), scene.ns()]);
    record.hostname = "pr-42.example.com".into();
    record.env = "pr-42".into();
    record.envs = BTreeMap::from([(Arc::clone(&record.namespaces[1]), Arc::from("staging"))]);
    record.binding_epoch = 7;
    record.update.draining = true;
    record.update.reachable = false;
    let (worker, _) = scene.begin(&record, rule).await;

    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    let view = reader.view(&worker.session, rule);
    same(rule, "it", &shown(&view.record), &shown(&record));
    same(rule, "the operator's order", &view.drain, &None);
    same(rule, "whether it ends", &view.ending, &false);
    counts_down(rule, "its lease", view.expires_in, scene.options.lease_ttl);
    let age = scene.now_ms().abs_diff(view.last_heartbeat_at);
    holds(rule, "its last heartbeat is its registration", age < 30_000);
}

/// All of a record, with its secret.
fn shown(record: &SessionRecord) -> String {
    format!("{record:?} {}", record.secret.expose())
}

async fn a_reader_learns_of_each_change(scene: &Scene) {
    let rule = "P4.1 (a reader learns of each change)";
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    let worker = scene.worker(&[scene.ns()]).await;
    reader.read(&*scene.store, rule).await;
    let headroom = reader.view(&worker.session, rule).record.update.headroom;
    same(rule, "the headroom of a new session", &headroom, &1024);

    let heartbeat = Heartbeat {
        session: worker.session.clone(),
        update: crate::store::SessionUpdate {
            draining: true,
            reachable: false,
            ..update(77)
        },
        acks: Vec::new(),
    };
    scene.store.heartbeat(heartbeat).await.holds(rule);
    reader.read(&*scene.store, rule).await;
    let view = reader.view(&worker.session, rule);
    let said = &view.record.update;
    same(
        rule,
        "what its heartbeat said",
        &(said.headroom, said.draining, said.reachable),
        &(77, true, false),
    );
    counts_down(
        rule,
        "the lease that a heartbeat renewed",
        view.expires_in,
        scene.options.lease_ttl,
    );

    scene.end(&worker, EndMode::AtExpiry, rule).await;
    reader.read(&*scene.store, rule).await;
    same(
        rule,
        "whether it ends",
        &reader.view(&worker.session, rule).ending,
        &true,
    );
    scene.end(&worker, EndMode::Now, rule).await;
    reader.read(&*scene.store, rule).await;
    holds(
        rule,
        "a session that has ended is gone",
        !reader.sees(&worker.session),
    );
}

async fn orders_are_seen(scene: &Scene) {
    let rule = "P3.4 (an operator's order is seen by every node)";
    let worker = scene.worker(&[scene.ns()]).await;
    let client = &worker.record.client_id;
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    let cordon = Some(Drain::Cordon);
    scene.store.order_drain(client, cordon).await.holds(rule);
    reader.read(&*scene.store, rule).await;
    let seen = reader.view(&worker.session, rule).drain;
    same(rule, "the order", &seen, &cordon);
    scene.store.order_drain(client, None).await.holds(rule);
    reader.read(&*scene.store, rule).await;
    let seen = reader.view(&worker.session, rule).drain;
    same(rule, "the order, once it is lifted", &seen, &None);
}

async fn addresses_move(scene: &Scene) {
    let rule = "P2.6 (what was found out anew of its addresses stays)";
    let worker = scene.worker(&[scene.ns()]).await;
    let moved = vec![([127, 0, 0, 2], 4_000).into()];
    let mut heartbeat = worker.beat();
    heartbeat.update.moved_to = Some(moved.clone());
    scene.store.heartbeat(heartbeat).await.holds(rule);
    scene.beat(&worker, rule).await;
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    let seen = &reader.view(&worker.session, rule).record.addresses;
    same(rule, "its addresses", seen, &moved);
}

async fn every_namespace_is_remembered(scene: &Scene) {
    let rule = "P5.1 (a namespace that was ever served is known)";
    let mut reader = Reader::default();
    reader.read(&*scene.store, rule).await;
    let (ns, other) = (scene.ns(), scene.ns());
    let mut record = scene.record(&[ns.clone(), other.clone()]);
    record.envs = BTreeMap::from([(other.clone(), Arc::from("elsewhere"))]);
    let (worker, _) = scene.begin(&record, rule).await;
    scene.end(&worker, EndMode::Now, rule).await;
    reader.read(&*scene.store, rule).await;
    let single: Arc<str> = PlacementKey::SINGLE.into();
    for served in [(single, ns), ("elsewhere".into(), other)] {
        holds(
            rule,
            &format!("{served:?} is known"),
            reader.namespaces.contains(&served),
        );
    }
}

async fn readers_do_not_disturb_one_another(scene: &Scene) {
    let rule = "P4.1 (every node reads what has changed since it last read)";
    let (mut often, mut seldom) = (Reader::default(), Reader::default());
    seldom.read(&*scene.store, rule).await;
    let node = scene.node().await;
    let mut workers = Vec::new();
    for _ in 0..20 {
        workers.push(scene.worker(&[scene.ns()]).await);
        often.read(&*node, rule).await;
    }
    for worker in &workers[..10] {
        scene.end(worker, EndMode::Now, rule).await;
        often.read(&*node, rule).await;
    }
    seldom.read(&*scene.store, rule).await;
    for (n, worker) in workers.iter().enumerate() {
        for reader in [&often, &seldom] {
            let seen = reader.sees(&worker.session);
            same(rule, "whether a session is seen", &seen, &(n >= 10));
        }
    }
    let gap = often
        .sessions
        .values()
        .all(|view| view.expires_in > Duration::ZERO);
    holds(rule, "what is seen lives", gap);
}
