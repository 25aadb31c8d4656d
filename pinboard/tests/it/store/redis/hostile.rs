//! What comes from outside stays in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinboard::store::{
    Drain, EndMode, HeartbeatOutcome, MessageBody, NewSession, PlacementKey, RegistryStore,
    SessionId, StoreOptions,
};
use pinned_testing::RedisServer;

use super::support::{STEADY, beat, holder, lives, place, ready, record};

/// Texts that try to leave their place: as components of keys, as fields of rows and states, as patterns, as scripts.
const TEXTS: [&str; 22] = [
    "",
    " ",
    ":",
    "::",
    "a:b",
    "a",
    "*",
    "**",
    "?",
    "[a-z]",
    "\\*",
    "%",
    "%3A",
    "a%3Ab",
    "{fleet}",
    "{s0}",
    "}{",
    "h 1 2 3 0 0 x",
    "\0",
    "\r\n$3\r\nDEL\r\n",
    "'] .. redis.call('FLUSHALL') .. ['",
    "idé-\u{1F600}",
];

#[tokio::test]
async fn every_id_and_namespace_has_a_row_of_its_own() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    let session = super::support::worker(&store).await;
    let mut keys = BTreeSet::new();
    for (n, text) in TEXTS.iter().enumerate() {
        let next = TEXTS[(n + 1) % TEXTS.len()];
        keys.insert(PlacementKey::new("*", "/ns", *text));
        keys.insert(PlacementKey::new("*", *text, "id"));
        keys.insert(PlacementKey::new(*text, "/ns", "id"));
        keys.insert(PlacementKey::new(*text, next, *text));
    }
    let mut rows = BTreeMap::new();
    for key in keys {
        let epoch = place(&store, &key, &session).await;
        rows.insert(key, epoch);
    }
    let mut namespaces: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (key, epoch) in &rows {
        let held = Some((session.clone(), *epoch));
        assert_eq!(holder(&store, key).await, held, "{key:?}");
        let namespace = (key.env.clone(), key.ns.clone());
        namespaces
            .entry(namespace)
            .or_default()
            .insert(key.id.clone());
    }
    let counts = store.row_counts().await.expect("it answers");
    assert_eq!(counts.len(), namespaces.len());
    for (env, ns, rows) in counts {
        let ids = &namespaces[&(env.clone(), ns.clone())];
        assert_eq!(rows, ids.len() as u64, "{env:?} {ns:?}");
        let (mut listed, mut cursor) = (BTreeSet::new(), 0);
        loop {
            let page = store.held_by(&session, &env, &ns, cursor).await;
            let (some, next) = page.expect("it answers");
            listed.extend(some);
            if next == 0 {
                break;
            }
            cursor = next;
        }
        assert_eq!(listed, *ids, "{env:?} {ns:?}");
    }
    only_own_keys(&server).await;
    store
        .end_session(&session, EndMode::Now)
        .await
        .expect("it answers");
    while store.sweep().await.expect("it answers") {}
    assert_eq!(store.row_counts().await.expect("it answers"), []);
}

#[tokio::test]
async fn every_session_and_client_is_its_own() {
    let server = RedisServer::start().await;
    let store = ready(&server.url(), STEADY).await;
    for text in TEXTS {
        let mut record = record(text, &[text, "/other"]);
        record.env = text.into();
        let session = NewSession {
            id: SessionId::new(format!("session {text}")),
            record,
        };
        let id = session.id.clone();
        let registered = store.register(session).await.expect("it answers");
        assert_eq!(
            (registered.earlier, registered.drain),
            (None, None),
            "{text:?}"
        );
        let cordoned = store.order_drain(text, Some(Drain::Cordon)).await;
        assert!(cordoned.expect("it answers"));
        let message = MessageBody {
            key: PlacementKey::new(text, text, text),
            deadline: None,
        };
        let queued = store.queue_messages(&id, vec![message]).await;
        assert!(queued.expect("it answers"));
        assert!(
            store
                .lead(text, text, STEADY.lease_ttl)
                .await
                .expect("it answers")
        );
    }
    let changes = store.sessions_since(0).await.expect("it answers");
    assert_eq!(changes.changed.len(), TEXTS.len());
    let namespaces = changes.namespaces.expect("it is complete");
    for text in TEXTS {
        let id = SessionId::new(format!("session {text}"));
        let view = changes
            .changed
            .iter()
            .find(|view| view.id == id)
            .expect("it lives");
        assert_eq!(view.record.client_id, text);
        assert_eq!(view.drain, Some(Drain::Cordon));
        let client = store.client_of(&id).await.expect("it answers");
        assert_eq!(client.as_deref(), Some(text));
        let client = store
            .client(text)
            .await
            .expect("it answers")
            .expect("it is known");
        assert_eq!(client.client_id, text);
        assert!(
            namespaces.contains(&(Arc::from(text), Arc::from(text))),
            "{text:?}"
        );
        let leader = store.leader(text).await.expect("it answers");
        assert_eq!(leader.map(|(node, _)| node).as_deref(), Some(text));

        let mut beat = beat(&id);
        // Confirmations that no store gave out.
        beat.acks = vec![
            text.to_owned(),
            "-inf".to_owned(),
            "(1".to_owned(),
            "1e9".to_owned(),
        ];
        match store.heartbeat(beat).await.expect("it answers") {
            HeartbeatOutcome::Renewed { messages, .. } => {
                let keys: Vec<_> = messages.into_iter().map(|m| m.body.key).collect();
                assert_eq!(keys, [PlacementKey::new(text, text, text)]);
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    only_own_keys(&server).await;
    for text in TEXTS {
        let id = SessionId::new(format!("session {text}"));
        assert!(
            store
                .end_session(&id, EndMode::Now)
                .await
                .expect("it answers")
        );
        assert!(!lives(&store, &id).await.expect("it answers"));
    }
}

/// Every key begins as ours do, and its hash tag is one of ours.
async fn only_own_keys(server: &RedisServer) {
    let StoreOptions { shards, .. } = STEADY;
    let keys = server.cli(&["--no-raw", "KEYS", "*"]).await;
    let tags: BTreeSet<_> = (0..shards)
        .map(|n| format!("{{s{n}}}"))
        .chain(["{fleet}".to_owned()])
        .collect();
    let mut seen = BTreeSet::new();
    for line in keys.lines() {
        let key = line.split_once('"').map_or(line, |(_, key)| key);
        let rest = key
            .strip_prefix("pinboard:")
            .unwrap_or_else(|| panic!("{line}"));
        let (tag, _) = rest.split_once(':').unwrap_or_else(|| panic!("{line}"));
        assert!(tags.contains(tag), "{line}");
        seen.insert(tag.to_owned());
    }
    assert_eq!(seen, tags);
}
