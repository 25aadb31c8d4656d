//! Wind-downs on many threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pinned::InstanceLeaseSettings;

use crate::app::{App, spawn};
use crate::scene::{Scene, actors, quick, seconds, seconds_left};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deadlines_changed_by_many_threads_are_told_in_order_to_the_last() {
    // H10.10: calls never overlap, and the last one tells what holds.
    let scene = Scene::default();
    let told = Arc::new(Mutex::new((0_usize, None)));
    let overlaps = Arc::new(AtomicBool::new(false));
    let (hears, overlapped) = (Arc::clone(&told), Arc::clone(&overlaps));
    scene.configure(move || {
        let (hears, overlapped) = (Arc::clone(&hears), Arc::clone(&overlapped));
        let inside = AtomicBool::new(false);
        InstanceLeaseSettings::new().on_wind_down(move |deadline| {
            overlapped.fetch_or(inside.swap(true, Ordering::AcqRel), Ordering::AcqRel);
            std::thread::yield_now();
            let mut told = hears.lock();
            *told = (told.0 + 1, deadline);
            inside.store(false, Ordering::Release);
        })
    });
    let work = scene.hold("work");
    let app = App::start(scene.worker(quick())).await;
    let answer = spawn(app.post("/actors/a/work").send());
    work.reached(1).await;

    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (actors, worker) = (actors(&app), app.worker.clone());
            std::thread::spawn(move || {
                for round in 1..500_u64 {
                    match thread {
                        0 => worker.server_drain(Some(Some(seconds(3_000 + round)))),
                        1 => worker.server_drain(None),
                        _ => actors.wind_down("a", (round % 3 > 0).then(|| seconds(1_000 + round))),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    app.worker.server_drain(None);
    actors(&app).wind_down("a", Some(seconds(77)));
    let (calls, last) = *told.lock();
    assert!(calls > 1 && !overlaps.load(Ordering::Acquire));
    let left = last
        .expect("a deadline")
        .duration_since(scene.context().domain().now())
        .expect("ahead");
    assert_eq!(
        (
            left.as_secs_f64().round() as u64,
            seconds_left(&scene.context())
        ),
        (77, Some(77))
    );
    actors(&app).wind_down("a", None);
    assert!(!scene.context().lease().winding_down() && !app.worker.is_draining());
    work.open();
    answer.await.expect("an answer").assert_ok("worked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn drains_that_race_requests_leave_nothing_behind() {
    // H10.5, H3.4: an instance that slips in is found by the drain, or refused by it.
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    for round in 0..30 {
        let clients: Vec<_> = (0..16)
            .map(|n| spawn(app.get(&format!("/actors/{round}-{n}")).send()))
            .collect();
        app.worker.drain(Some(seconds(60))).await;
        assert_eq!(actors(&app).len(), 0, "round {round}");
        for client in clients {
            let reply = client.await.expect("an answer");
            assert!(matches!(reply.status.as_u16(), 200 | 503), "{}", reply.body);
        }
        app.worker.revoke_drain();
        // A client that came after the drain was lifted has an instance; the next round ends it.
    }
    let steps = scene.steps();
    let count = |what| steps.iter().filter(|step| *step == what).count();
    app.worker.drain(None).await;
    let late = scene
        .steps()
        .iter()
        .filter(|step| *step == "teardown")
        .count();
    assert_eq!(count("setup"), count("teardown") + late);
}
