//! Admission from many threads: what one checks, another must not undo before it acts.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_first_requests_from_many_threads_are_one_activation() {
    // H3.7
    let scene = local(HostOptions::new()).await;
    for round in 0..20 {
        let id = format!("/rooms/id-{round}");
        let calls: Vec<_> = (0..100).map(|_| spawn(scene.get(&id).send())).collect();
        for call in calls {
            assert_eq!(call.await.unwrap().status, StatusCode::OK);
        }
        assert_eq!(scene.host.activations(), round + 1);
    }
    assert_eq!(scene.host.len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_contention_the_cap_is_never_exceeded_and_never_leaks() {
    // H3.4, H3.6, H4.11
    let options = HostOptions::new()
        .max_instances(8)
        .max_concurrent_activations(64);
    let scene = Arc::new(local(options).await);
    let clients: Vec<_> = (0..32)
        .map(|client| {
            let scene = Arc::clone(&scene);
            spawn(async move {
                for round in 0..50 {
                    let id = format!("id-{}", (client * 7 + round) % 24);
                    let reply = scene.get(&format!("/rooms/{id}")).send().await;
                    match reply.status {
                        StatusCode::OK => scene.host.abort(&id),
                        _ if reply.detail() == CAPACITY => {}
                        // Aborted by another client while it was on its way.
                        _ => assert!(
                            matches!(&*reply.detail(), CLOSING | "instance aborted"),
                            "{}",
                            reply.body
                        ),
                    }
                    assert!(scene.host.len() <= 8);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    assert!(scene.house.most.load(Ordering::SeqCst) <= 8);
    scene.app.worker.abort_all();
    scene.app.worker.drain(None).await;
    assert_eq!(
        (scene.host.len(), scene.house.live.load(Ordering::SeqCst)),
        (0, 0)
    );
    // Every place is free again.
    scene.app.worker.revoke_drain();
    for n in 0..8 {
        scene.live(&format!("again-{n}")).await;
    }
    scene.assert_refused("one-too-many", CAPACITY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_drain_that_begins_among_first_requests_leaves_nothing() {
    // H3.4: whoever came before the drain is closed by it, whoever comes after is refused.
    for _ in 0..20 {
        let scene = Arc::new(local(HostOptions::new()).await);
        let clients: Vec<_> = (0..64)
            .map(|n| spawn(scene.get(&format!("/rooms/id-{n}")).send()))
            .collect();
        scene.app.worker.drain(Some(Duration::from_secs(5))).await;
        assert_eq!(scene.host.len(), 0);
        for client in clients {
            let reply = client.await.unwrap();
            let known = [DRAINING, CLOSING, "instance aborted", QUEUE];
            assert!(
                reply.status == StatusCode::OK || known.contains(&&*reply.detail()),
                "{}",
                reply.body
            );
        }
        assert_eq!(
            (scene.host.len(), scene.house.live.load(Ordering::SeqCst)),
            (0, 0)
        );
    }
}
