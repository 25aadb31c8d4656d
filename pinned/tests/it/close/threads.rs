//! Closes on many threads.

use std::time::Duration;

use crate::app::{App, pass, settle, spawn};
use crate::scene::{Scene, actors, get, post, quick, seconds};
use crate::wind_down::begin_drain;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deadlines_that_come_while_they_are_changed_leave_no_timer_behind() {
    // H11.3, H10.3
    let scene = Scene::default();
    let work = scene.hold("work");
    let app = App::start(scene.placed_worker(quick())).await;
    for round in 0..20 {
        let answer = spawn(post(&app, &format!("/actors/{round}/work")).send());
        work.reached(round + 1).await;
        let threads: Vec<_> = (0..3_u64)
            .map(|thread| {
                let actors = actors(&app);
                std::thread::spawn(move || {
                    for step in 0..200 {
                        // In the past of the timer by the time that it is set anew, more often than not.
                        let far = seconds(3_600 + thread * 1_000 + step);
                        actors.wind_down(&round.to_string(), Some(far));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        actors(&app).wind_down(&round.to_string(), Some(Duration::from_micros(300)));
        for step in 0..200 {
            let deadline = (step % 2 == 0).then(|| seconds(3_600 + step));
            actors(&app).wind_down(&round.to_string(), deadline);
        }
        actors(&app).abort(&round.to_string());
        answer
            .await
            .expect("an answer")
            .assert_error(503, "instance aborted");
    }
    app.worker.drain(None).await;
    // The sweeper may hold one in its hand for a moment more.
    for _ in 0..1_000 {
        if scene.held() == 0 {
            return;
        }
        pass(1).await;
    }
    panic!("{} instances are held", scene.held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn idle_evictions_that_race_requests_lose_none() {
    // H8.2, H3.9, H4.11
    let scene = Scene::default();
    let options = quick()
        .idle_timeout(Duration::from_micros(50))
        .sweep_interval(Duration::from_micros(100));
    let app = App::start(scene.worker(options)).await;
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let app = app.clone();
            spawn(async move {
                for n in 0..300 {
                    let path = format!("/actors/{}", (client + n) % 3);
                    let reply = app.get(&path).send().await;
                    // One that stood before the instance when it closed is told to come again.
                    if reply.status == 503 {
                        reply.assert_refused("instance closing; retry");
                    } else {
                        reply.assert_ok("here");
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("no panic");
    }
    app.worker.drain(None).await;
    assert_eq!(actors(&app).evictions(), actors(&app).activations());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn kept_closes_that_are_forced_in_any_moment_release_once_or_were_over() {
    // H13.3: an upgrade at the last step is either acted on or came too late.
    let scene = Scene::default();
    let options = quick()
        .idle_timeout(Duration::ZERO)
        .release_placement_on_idle(false);
    let app = App::start(scene.placed_worker(options)).await;
    for round in 0..200 {
        let id = round.to_string();
        let path = format!("/actors/{id}");
        let forced = {
            let actors = actors(&app);
            std::thread::spawn(move || {
                for _ in 0..50 {
                    actors.wind_down(&id, Some(seconds(60)));
                    std::thread::yield_now();
                }
            })
        };
        get(&app, &path).epoch(1).send().await;
        forced.join().expect("no panic");
        while !actors(&app).is_empty() {
            pass(1).await;
        }
        let releases = scene
            .steps()
            .iter()
            .filter(|step| step.starts_with("release "))
            .count();
        let again = get(&app, &path).epoch(1).send().await;
        match releases {
            0 => again.assert_ok("here"),
            1 => again.assert_refused("released placement epoch; retry"),
            more => panic!("{more} releases"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_may_be_decided_on_a_thread_without_a_runtime() {
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    let turn = actors(&app).read("a").await.expect("a turn");
    let ctx = scene.context();
    ctx.lease().wind_down(None);
    std::thread::spawn(move || drop(turn))
        .join()
        .expect("no panic");
    settle().await;
    assert_eq!(
        (actors(&app).len(), scene.steps()),
        (0, vec!["setup".to_owned(), "teardown".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn aborts_that_race_requests_never_overlap_two_instances_of_an_id() {
    // H4.11, H11.1: of each instance the setup comes before its teardown, and that before the next setup.
    let scene = Scene::default();
    let app = App::start(scene.worker(quick())).await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let aborter = {
        let (actors, stop) = (actors(&app), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Acquire) {
                actors.abort("a");
                std::thread::yield_now();
            }
        })
    };
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let app = app.clone();
            spawn(async move {
                for _ in 0..200 {
                    let reply = app.get("/actors/a").send().await;
                    assert!(matches!(reply.status.as_u16(), 200 | 503), "{}", reply.body);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("no panic");
    }
    stop.store(true, std::sync::atomic::Ordering::Release);
    aborter.join().expect("no panic");
    begin_drain(&app.worker, None).await.await.expect("drained");
    let steps = scene.steps();
    let mut live = false;
    for step in &steps {
        assert_eq!(live, step == "teardown", "{steps:?}");
        live = step == "setup";
    }
    assert!(!live);
}
