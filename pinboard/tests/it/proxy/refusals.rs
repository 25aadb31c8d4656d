//! What happens to a request that a worker has not run (P5.9, P5.10), or that no worker answers (P5.11).

use std::time::Duration;

use pinboard::store::EndMode;
use pinned_testing::MetricsProbe;

use super::rig::{Plan, Rig, Worker, says};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn refusal(reason: &str) -> String {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\npinned-refusal: {reason}\r\ncontent-length: 3\r\n\r\nno!"
    )
}

/// What the other edition says while an instance closes.
const PLAIN: &str =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 3\r\n\r\nno!";

/// Two workers, the first of which holds `alice`.
async fn pair(rig: &Rig) -> (Worker, Worker) {
    let first = rig.worker("a").await;
    rig.place("alice").await;
    assert_eq!(rig.holder("alice").await, Some(first.session.clone()));
    (first, rig.worker("b").await)
}

#[tokio::test]
async fn an_id_that_is_not_resident_is_placed_again() {
    // P5.9
    for reason in [
        "lease-unhealthy",
        "lease-expired",
        "draining",
        "capacity",
        "activation-queue",
    ] {
        let rig = Rig::new().await;
        let (first, second) = pair(&rig).await;
        let mut client = rig
            .send("POST /rooms/alice/x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
            .await;
        let (mut peer, before) = first.asked().await;
        peer.expect("hello").await;
        peer.write(refusal(reason)).await;
        let (mut peer, after) = second.asked().await;
        peer.expect("hello").await;
        peer.write(OK).await;
        assert_eq!(client.response().await.1, "ok", "{reason}");
        assert_eq!(after.first_line(), before.first_line());
        let epoch = |head: &super::rig::Head| -> u64 {
            head.header("pinboard-epoch")
                .expect("an epoch")
                .parse()
                .expect("a number")
        };
        assert!(epoch(&after) > epoch(&before));
        assert!(second.caller(&after).is_some(), "for this worker now");
        assert_eq!(rig.holder("alice").await, Some(second.session.clone()));
    }
}

#[tokio::test]
async fn a_busy_instance_stays_where_it_is() {
    // P5.9, also of a reason that is not known.
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    for reason in ["busy", "some-other-day"] {
        let mut client = rig.get("/rooms/alice").await;
        let (mut peer, _) = first.answer(&refusal(reason)).await;
        let (head, body) = client.response().await;
        assert_eq!((head.status(), &*body), (503, "no!"));
        assert_eq!(head.header("retry-after"), Some("1"));
        assert_eq!(head.header("pinned-refusal"), None);
        // Not kept for the next round.
        peer.stream.set_zero_linger().expect("a socket");
        peer.finish().await;
    }
    assert!(second.is_left_alone());
    assert_eq!(rig.holder("alice").await, Some(first.session));
}

#[tokio::test]
async fn what_is_moving_is_waited_for() {
    // P5.10: "So a rolling deploy shows clients no error."
    for answer in [
        refusal("closing"),
        refusal("past-deadline"),
        PLAIN.to_owned(),
    ] {
        let rig = Rig::new().await;
        let (first, second) = pair(&rig).await;
        rig.end(&second, EndMode::Now).await;
        let mut client = rig.get("/rooms/alice").await;
        first.answer(&answer).await;
        // The replacement comes up, and only then lets the old one go.
        let second = rig.worker("c").await;
        assert!(client.is_silent());
        rig.end(&first, EndMode::Now).await;
        second.answer(OK).await;
        assert_eq!(client.response().await.1, "ok");
    }
}

#[tokio::test]
async fn what_has_moved_is_followed() {
    // P5.9: this node's knowledge is stale, and the fence of the worker says so.
    for reason in ["stale-epoch", "released-epoch"] {
        let rig = Rig::new().await;
        let (first, second) = pair(&rig).await;
        let mut client = rig.get("/rooms/alice").await;
        let (mut peer, _) = first.asked().await;
        rig.release(&first, "alice").await;
        rig.end(&first, EndMode::Now).await;
        peer.write(refusal(reason)).await;
        second.answer(OK).await;
        assert_eq!(client.response().await.1, "ok");
    }
}

#[tokio::test]
async fn a_refusal_that_nothing_follows_is_relayed_after_a_while() {
    // P5.10
    let probe = MetricsProbe::new();
    let _watching = probe.watch();
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    let began = rig.domain.monotonic();
    let mut client = rig.get("/rooms/alice").await;
    first.answer(&refusal("closing")).await;
    let (head, body) = client.response().await;
    assert_eq!((head.status(), &*body), (503, "no!"));
    assert_eq!(head.header("retry-after"), Some("1"));
    let took = rig.domain.monotonic() - began;
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(4),
        "{took:?}"
    );
    assert!(second.is_left_alone());
    // The wait is a part of what the client waited for.
    let recorded = probe.histogram("pinboard_request_duration_seconds", &[]);
    assert!(
        matches!(*recorded, [seconds] if seconds >= 2.0),
        "{recorded:?}"
    );
}

/// What a worker says to a token of a session that it does not hold (W8.6).
const STRANGER: &str =
    "HTTP/1.1 403 Forbidden\r\npinned-refusal: invalid-attestation\r\ncontent-length: 3\r\n\r\nno!";

#[tokio::test]
async fn somebody_else_at_the_holders_address_is_as_good_as_nobody() {
    // P5.11, W8.6: the worker was restarted, and its lease runs yet. Nothing that the client could mend.
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    let mut client = rig.get("/rooms/alice").await;
    first.answer(STRANGER).await;
    let (head, body) = client.response().await;
    assert_eq!(
        (head.status(), &*body),
        (502, r#"{"error":"worker unreachable"}"#)
    );
    assert!(head.header("retry-after").is_some());
    assert!(second.is_left_alone());
    assert_eq!(rig.holder("alice").await, Some(first.session));
}

#[tokio::test]
async fn an_id_whose_holder_has_registered_anew_is_followed() {
    // P2.5, W8.6: the row names another session by the time that this one is refused.
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = first.asked().await;
    rig.release(&first, "alice").await;
    rig.end(&first, EndMode::Now).await;
    peer.write(STRANGER).await;
    second.answer(OK).await;
    assert_eq!(client.response().await.1, "ok");
}

#[tokio::test]
async fn an_application_may_say_403() {
    let rig = Rig::new().await;
    let first = rig.worker("a").await;
    let mut client = rig.get("/rooms/alice").await;
    first
        .answer("HTTP/1.1 403 Forbidden\r\ncontent-length: 3\r\n\r\napp")
        .await;
    let (head, body) = client.response().await;
    assert_eq!((head.status(), &*body), (403, "app"));
}

#[tokio::test]
async fn an_application_may_say_503() {
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    let mut client = rig.get("/rooms/alice").await;
    first
        .answer("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 3\r\n\r\napp")
        .await;
    assert_eq!(client.response().await.1, "app");
    // And any status with a header that means something on a 503 alone.
    let mut client = rig.get("/rooms/alice").await;
    let (mut peer, _) = first.asked().await;
    peer.write("HTTP/1.1 500 Oops\r\npinned-refusal: draining\r\nretry-after: 1\r\ncontent-length: 3\r\n\r\napp").await;
    let (head, _) = client.response().await;
    assert_eq!(head.status(), 500);
    assert!(second.is_left_alone());
}

#[tokio::test]
async fn a_request_is_placed_again_three_times_at_most() {
    // P5.9
    let rig = Rig::new().await;
    let first = rig.worker("a").await;
    rig.place("alice").await;
    let mut workers = vec![first];
    for name in ["b", "c", "d", "e"] {
        workers.push(rig.worker(name).await);
    }
    let mut client = rig.get("/rooms/alice").await;
    let mut asked = 0;
    let answer = async {
        loop {
            let next = workers.iter().map(|worker| Box::pin(worker.accept()));
            let (mut peer, ..) = futures_util::future::select_all(next).await;
            peer.head().await;
            peer.write(refusal("draining")).await;
            asked += 1;
        }
    };
    let (head, body) = tokio::select! {
        response = client.response() => response,
        never = answer => never,
    };
    assert_eq!((head.status(), &*body), (503, "no!"));
    assert_eq!(asked, 4);
}

#[tokio::test]
async fn a_body_past_64_kib_is_not_sent_again() {
    // P5.9
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    for (length, is_sent_again) in [(64 << 10, true), ((64 << 10) + 1, false)] {
        let mut client = rig
            .send(&format!(
                "POST /rooms/bob HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
            ))
            .await;
        client.write(vec![b'x'; length]).await;
        let mut refuser = tokio::select! {
            peer = first.accept() => peer,
            peer = second.accept() => peer,
        };
        refuser.head().await;
        refuser.read(length).await;
        refuser.write(refusal("draining")).await;
        if is_sent_again {
            let mut peer = tokio::select! {
                peer = first.accept() => peer,
                peer = second.accept() => peer,
            };
            peer.head().await;
            assert!(peer.read(length).await.iter().all(|byte| *byte == b'x'));
            peer.write(OK).await;
            assert_eq!(client.response().await.1, "ok");
            peer.finish().await;
        } else {
            let (head, body) = client.response().await;
            assert_eq!((head.status(), &*body), (503, "no!"));
        }
    }
}

#[tokio::test]
async fn what_cannot_be_placed_is_said() {
    // P4.5
    let rig = Rig::new().await;
    let worker = rig.worker("a").await;
    rig.end(&worker, EndMode::Now).await;
    let (head, body) = rig.get("/rooms/alice").await.response().await;
    assert_eq!(head.status(), 503);
    assert!(says(&body, "no live workers"), "{body}");
    assert_eq!(head.header("retry-after"), Some("1"));
    assert_eq!(head.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_worker_that_cannot_be_reached_keeps_its_ids() {
    // P5.11
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    let session = first.session.clone();
    first.vanish();
    let (head, body) = rig.get("/rooms/alice").await.response().await;
    assert_eq!(head.status(), 502);
    assert!(says(&body, "worker unreachable"), "{body}");
    assert_eq!(head.header("retry-after"), Some("1"));
    assert!(second.is_left_alone());
    assert_eq!(rig.holder("alice").await, Some(session));
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_never_sent_twice() {
    // P5.11
    let rig = Rig::new().await;
    let (first, second) = pair(&rig).await;
    for answer in [
        "",
        "HTTP/1.1 200 O",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
    ] {
        let mut client = rig.get("/rooms/alice").await;
        let (mut peer, _) = first.answer(answer).await;
        peer.finish().await;
        let (head, body) = client.response().await;
        assert_eq!(head.status(), 502, "{answer:?}");
        assert!(says(&body, "worker unreachable"), "{body}");
    }
    // Also when its holder is gone meanwhile.
    let mut client = rig.get("/rooms/alice").await;
    let (peer, _) = first.asked().await;
    rig.end(&first, EndMode::Now).await;
    drop(peer);
    assert_eq!(client.response().await.0.status(), 502);
    assert!(first.is_left_alone() && second.is_left_alone());
}

#[tokio::test]
async fn a_request_that_has_not_arrived_follows_its_id() {
    // P5.10, P5.11: the old worker is gone before this node has heard of it.
    let plan = Plan {
        is_told: false,
        ..Plan::default()
    };
    let rig = Rig::planned(plan).await;
    let (first, second) = pair(&rig).await;
    rig.end_unseen(&first, EndMode::Now).await;
    first.vanish();
    let mut client = rig
        .send("POST /rooms/alice HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        .await;
    let (mut peer, _) = second.asked().await;
    peer.expect("hi").await;
    peer.write(OK).await;
    assert_eq!(client.response().await.1, "ok");
}

#[tokio::test]
async fn what_is_no_answer_is_said() {
    let rig = Rig::new().await;
    let (first, _second) = pair(&rig).await;
    let mut client = rig.get("/rooms/alice").await;
    first.answer("SSH-2.0-OpenSSH_9.6\r\n").await;
    let (head, body) = client.response().await;
    assert_eq!(head.status(), 502);
    assert!(says(&body, "invalid response from worker"), "{body}");
}
