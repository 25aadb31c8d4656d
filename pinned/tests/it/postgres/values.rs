//! What PostgreSQL cannot store, and the order of what it can (D9.10, D5.3).

use futures_util::future::join_all;
use pinned::durability::postgres::PostgresOptions;
use pinned::durability::{
    Claim, Doc, InstanceKey, RowFilter, RowOp, StateStore, StoreError, TrayKey,
};
use pinned_testing::PostgresServer;

use super::rig::{Rig, claim, doc, key, store, within, write};

// D9.10, D6.1
#[tokio::test]
async fn what_cannot_be_encoded_is_refused_before_anything_is_applied() {
    let rig = Rig::new().await;
    rig.acquire("blue", 1).await;
    let nul = doc(r#"{"a":"\u0000"}"#);
    let nul_claim = Claim::new(InstanceKey::new("/rooms", "b\0"), 2);
    let good = RowOp::set(key("good"), true, Doc::empty());
    let outcomes = [
        rig.store
            .set_tray(claim("blue", 2), key("~"), true, nul.clone())
            .await,
        rig.store
            .apply_batch(
                claim("blue", 2),
                vec![good, RowOp::set(key("~"), true, nul)],
            )
            .await,
        rig.store
            .set_tray(claim("blue", 2), key("\0"), true, Doc::empty())
            .await,
        rig.store
            .get_tray(claim("blue", 2), key("\0"))
            .await
            .map(drop),
        rig.store
            .list(claim("blue", 2), RowFilter::tray("\0"))
            .await
            .map(drop),
        rig.store.delete_tray(nul_claim, key("~")).await,
        rig.store
            .delete_tray(claim("blue", u64::MAX), key("~"))
            .await,
    ];
    for outcome in outcomes {
        let error = outcome.expect_err("refused");
        assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    }
    assert_eq!(rig.epoch("blue").await.map(|row| row.0), Some(1));
    assert_eq!(rig.rows("blue").await, [""; 0]);
}

// D9.10, D11.8: what only the server can tell.
#[tokio::test]
async fn a_write_that_the_server_refuses_leaves_the_others_of_its_group_unharmed() {
    let rig = Rig::new().await;
    // Random enough that it does not compress into an index entry.
    let long: String = (0..4_000_u64)
        .map(|n| {
            char::from(b'a' + (n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 13) as u8 % 26)
        })
        .collect();
    let rooms: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    for room in &rooms {
        rig.acquire(room, 1).await;
    }
    let writes = rooms.iter().map(|room| {
        let tray = if room == "3" {
            TrayKey::new("work", &*long)
        } else {
            key("~")
        };
        rig.store.set_tray(claim(room, 1), tray, true, Doc::empty())
    });
    for (room, outcome) in within(join_all(writes)).await.into_iter().enumerate() {
        if room == 3 {
            let error = outcome.expect_err("too long for the index");
            assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
        } else {
            outcome.expect("unharmed");
        }
    }
    assert_eq!(rig.count("SELECT count(*) FROM pinned_tray_index").await, 4);
}

// D1.2: the column takes any JSON.
#[tokio::test]
async fn a_row_that_is_no_object_is_an_error_rather_than_an_empty_doc() {
    let rig = Rig::new().await;
    write(&rig.store, "blue", 1, 1).await.expect("written");
    rig.db
        .batch_execute("UPDATE pinned_tray_index SET doc = '[]'")
        .await
        .expect("by somebody else");
    let error = within(rig.store.list(claim("blue", 1), RowFilter::all())).await;
    assert!(matches!(error, Err(StoreError::Failed(_))), "{error:?}");
}

// D5.3
#[tokio::test]
async fn listings_are_in_the_order_of_bytes_whatever_the_collation_of_the_database() {
    let server = PostgresServer::shared().await;
    let options = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
    let dsn = server.create_database_like("collated", options).await;
    let store = store(&dsn, PostgresOptions::new());
    within(store.setup()).await.expect("made");
    let names = ["a", "B", "_", "ä", "Z", "é", "b"];
    for name in names {
        let claim = Claim::new(InstanceKey::new(name, name), 0);
        for tray in names {
            within(store.set_tray(claim.clone(), TrayKey::new(tray, name), true, Doc::empty()))
                .await
                .expect("written");
        }
    }
    let mut sorted = names;
    sorted.sort_unstable();

    let claim = Claim::new(InstanceKey::new("B", "B"), 0);
    let rows = within(store.list(claim, RowFilter::all()))
        .await
        .expect("listed");
    let listed: Vec<&str> = rows.iter().map(|row| &*row.key.tray_ns).collect();
    assert_eq!(listed, sorted);

    // Page by page.
    let mut after = None;
    for chunk in sorted.chunks(3) {
        let page = within(store.marked_instances(after, 3))
            .await
            .expect("listed");
        let listed: Vec<&str> = page.iter().map(|instance| &*instance.id).collect();
        assert_eq!(listed, chunk);
        after = page.last().cloned();
    }
}
