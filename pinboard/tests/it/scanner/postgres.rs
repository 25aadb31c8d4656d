//! Reading the tables that workers write.

use pinboard::config::PostgresTarget;
use pinboard::scanner::{Marked, MarkedRows, PostgresRows};
use pinboard::store::PlacementKey;
use pinned_domain::Domain;
use pinned_testing::PostgresServer;
use tokio_postgres::{Client, NoTls};

/// As workers make them (D8.1, D8.2).
const TABLES: &str = "\
    CREATE TABLE pinned_epoch (ns TEXT NOT NULL, id TEXT NOT NULL, epoch BIGINT NOT NULL, PRIMARY KEY (ns, id)); \
    CREATE TABLE pinned_tray_index (\
        ns TEXT NOT NULL, id TEXT NOT NULL, tray_ns TEXT NOT NULL, tray_id TEXT NOT NULL, \
        marked BOOLEAN NOT NULL, doc JSONB NOT NULL, \
        env TEXT NOT NULL DEFAULT '*', hostname TEXT NOT NULL DEFAULT '*', \
        PRIMARY KEY (ns, id, tray_ns, tray_id))";

pub(super) async fn client(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.expect("a server");
    drop(Domain::real().spawn(connection));
    client
}

fn rows(dsn: &str) -> PostgresRows {
    PostgresRows::new(PostgresTarget::parse(dsn).expect("a DSN"), Domain::real())
}

async fn all(rows: &PostgresRows) -> (Vec<Marked>, usize) {
    let (mut all, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let page = rows.page(after.as_ref()).await.expect("a page");
        all.extend(page.ids);
        pages += 1;
        match page.next {
            Some(next) => after = Some(next),
            None => return (all, pages),
        }
    }
}

fn marked(env: &str, ns: &str, id: &str, epoch: u64) -> Marked {
    Marked {
        key: PlacementKey::new(env, ns, id),
        epoch,
    }
}

// P8.1
#[tokio::test]
async fn marked_rows_are_read_with_their_epochs_once_the_tables_are_there() {
    let dsn = PostgresServer::shared().await.create_database().await;
    let rows = rows(&dsn);
    assert_eq!(all(&rows).await, (vec![], 1));
    assert_eq!(rows.highest_epoch().await.expect("none"), 0);

    let client = client(&dsn).await;
    client.batch_execute(TABLES).await.expect("tables");
    assert_eq!(rows.highest_epoch().await.expect("none"), 0);
    client
        .batch_execute(
            "INSERT INTO pinned_epoch VALUES ('/a', 'Z', 41), ('/a', 'z', 7), ('/b', 'é', 1); \
             INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc, env) VALUES \
             ('/a', 'z', 'mail', '1', true, '{}', '*'), ('/a', 'z', 'mail', '2', true, '{}', '*'), \
             ('/a', 'z', 'post', '1', true, '{}', 'staging'), ('/a', 'Z', 'mail', '1', true, '{}', '*'), \
             ('/a', 'rest', 'mail', '1', false, '{}', '*'), ('/b', 'é', '', '', true, '{}', '*'), \
             ('/b', 'new', '', '', true, '{}', '*')",
        )
        .await
        .expect("rows");
    let (mut found, _) = all(&rows).await;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    let expected = [
        marked("*", "/a", "Z", 41),
        marked("*", "/a", "z", 7),
        marked("*", "/b", "new", 0),
        marked("*", "/b", "é", 1),
        marked("staging", "/a", "z", 7),
    ];
    assert_eq!(found, expected);
    // P4.3
    assert_eq!(rows.highest_epoch().await.expect("an epoch"), 41);
}

// P8.1
#[tokio::test]
async fn pages_cover_every_id_whatever_the_collation() {
    let server = PostgresServer::shared().await;
    for (name, options) in [
        ("pages_c", "TEMPLATE template0 LOCALE 'C'"),
        (
            "pages_icu",
            "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'",
        ),
    ] {
        let dsn = server.create_database_like(name, options).await;
        let client = client(&dsn).await;
        client.batch_execute(TABLES).await.expect("tables");
        client
            .batch_execute(
                "INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc) \
                 SELECT '/n' || n % 3, CASE n % 2 WHEN 0 THEN 'A-' ELSE 'a.' END || n / 2, 't', k::text, true, '{}' \
                 FROM generate_series(1, 1700) n, generate_series(1, 2) k",
            )
            .await
            .expect("rows");
        let (found, pages) = all(&rows(&dsn)).await;
        assert_eq!(pages, 4, "{name}");
        let mut keys: Vec<PlacementKey> = found.into_iter().map(|marked| marked.key).collect();
        keys.sort();
        // The trays of one id may be on two pages.
        keys.dedup();
        assert_eq!(keys.len(), 1700, "{name}");
    }
}

// P8.3
#[tokio::test]
async fn a_role_that_may_only_read_is_enough_and_a_broken_connection_is_made_anew() {
    let server = PostgresServer::shared().await;
    let dsn = server.create_database().await;
    let client = client(&dsn).await;
    client.batch_execute(TABLES).await.expect("tables");
    client
        .batch_execute(
            "INSERT INTO pinned_tray_index (ns, id, tray_ns, tray_id, marked, doc) VALUES ('/a', '1', '', '', true, '{}'); \
             DROP ROLE IF EXISTS scanner_reads; CREATE ROLE scanner_reads LOGIN; \
             GRANT SELECT ON pinned_tray_index, pinned_epoch TO scanner_reads",
        )
        .await
        .expect("a role");
    let dsn = dsn.replace("postgres://postgres@", "postgres://scanner_reads@");
    let rows = rows(&dsn);
    assert_eq!(all(&rows).await.0.len(), 1);
    let ended = client
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pinboard scanner%' \
             AND datname = current_database()",
            &[],
        )
        .await
        .expect("superuser");
    assert_eq!(ended, 1);
    // The first look may still meet the end of the old connection.
    let mut looks = Vec::new();
    for _ in 0..2 {
        looks.push(rows.page(None).await.map(|page| page.ids.len()).ok());
    }
    assert_eq!(looks[1], Some(1), "{looks:?}");
}
