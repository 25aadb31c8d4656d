//! A chain of calls that comes back to an instance whose turn an ancestor holds, by way of other workers (W14.3, design
//! "Authoring").

use pinned::MAX_CALL_DEPTH;

use super::*;
use crate::app::settle;

/// A refusal of a call that would wait for its own ancestor.
fn refused(links: &str) -> String {
    format!("508 {{\"detail\":\"call chain would deadlock: {links}\"}}")
}

/// `a` lives on the first worker, `b` and `c` on others.
async fn fleet() -> Exchange {
    let fleet = Exchange::start(3).await;
    for (worker, id) in ["a", "b", "c"].into_iter().enumerate() {
        fleet.place(id, worker);
    }
    fleet
}

#[tokio::test(start_paused = true)]
async fn a_ring_over_workers_is_refused_by_name_at_once() {
    // W14.3
    let fleet = fleet().await;
    let began = fleet.app(0).worker.domain().monotonic();
    let cases = [
        (
            "/nodes/a/exclusive/nodes/b/shared/nodes/a",
            "/nodes/a (exclusive) -> /nodes/b (shared) -> /nodes/a (shared)",
            1,
        ),
        (
            "/nodes/a/shared/nodes/b/exclusive/nodes/c/shared/nodes/a/exclusive/nodes/b",
            "/nodes/a (shared) -> /nodes/b (exclusive) -> /nodes/c (shared) -> /nodes/a (exclusive)",
            2,
        ),
        // Not the first of the chain, but one in the middle.
        (
            "/nodes/a/shared/nodes/b/exclusive/nodes/c/shared/nodes/b",
            "/nodes/a (shared) -> /nodes/b (exclusive) -> /nodes/c (shared) -> /nodes/b (shared)",
            2,
        ),
    ];
    for (path, links, hops) in cases {
        let expected = "200 ".repeat(hops) + &refused(links);
        assert_eq!(fleet.get(path).text().await, expected);
    }
    let now = fleet.app(0).worker.domain().monotonic();
    assert!(now - began < Duration::from_secs(1));
    // The turns are free again.
    assert_eq!(fleet.get("/nodes/a/alone").text().await, "alone");
}

#[tokio::test(start_paused = true)]
async fn shared_within_shared_runs_past_whoever_waits_alone() {
    let fleet = fleet().await;
    let ring = fleet
        .get("/nodes/a/shared/nodes/b/gated/nodes/a/shared/nodes/a")
        .begin()
        .await;
    fleet.named("called").reached(1).await;
    let alone = fleet.get("/nodes/a/alone").begin().await;
    fleet.named("called").open();
    assert_eq!(ring.await.expect("answered").body, "200 200 200 a");
    assert_eq!(alone.await.expect("answered").body, "alone");
}

#[tokio::test(start_paused = true)]
async fn what_an_ancestor_holds_is_looked_up_when_the_chain_comes_back() {
    let fleet = fleet().await;
    // Taken and given back.
    assert_eq!(
        fleet
            .get("/nodes/a/taken/nodes/b/shared/nodes/a")
            .text()
            .await,
        format!(
            "200 {}; 200 200 a",
            refused("/nodes/a (exclusive) -> /nodes/b (shared) -> /nodes/a (shared)")
        )
    );
    // Given back while the call is on its way.
    let said = fleet
        .get("/nodes/a/given-back/nodes/b/gated/nodes/a/alone")
        .text()
        .await;
    assert_eq!(said, "200 200 alone");
}

#[tokio::test(start_paused = true)]
async fn an_ancestor_that_was_closed_since_is_in_nobodys_way() {
    let fleet = fleet().await;
    let cut = fleet
        .get("/nodes/a/exclusive/nodes/b/gated/nodes/a")
        .begin()
        .await;
    fleet.named("called").reached(1).await;
    fleet
        .app(0)
        .worker
        .hosted::<Node>()
        .expect("hosted")
        .abort("a");
    assert_eq!(cut.await.expect("answered").detail(), "instance aborted");
    settle().await;
    // Its next activation, on the same worker.
    fleet.place("a", 0);
    fleet.named("called").open();
    settle().await;
    assert_eq!(*fleet.said.lock(), ["200 a"]);
}

#[tokio::test(start_paused = true)]
async fn an_activation_elsewhere_is_not_the_one_that_is_held() {
    let fleet = fleet().await;
    let ring = fleet
        .get("/nodes/a/exclusive/nodes/b/gated/nodes/a")
        .begin()
        .await;
    fleet.named("called").reached(1).await;
    fleet.place("a", 2);
    fleet.named("called").open();
    assert_eq!(ring.await.expect("answered").body, "200 200 a");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_waits_for_its_turn_like_any_other() {
    let fleet = fleet().await;
    let said = fleet
        .get("/nodes/a/impatient/nodes/b/gated/nodes/a")
        .text()
        .await;
    assert_eq!(said, "no answer within 2s");
    // The call goes on, and comes back while somebody else holds the turn.
    let other = fleet.get("/nodes/a/waits").begin().await;
    fleet.named("called").open();
    settle().await;
    fleet.named("waits").open();
    other.await.expect("answered").assert_ok("waited");
    settle().await;
    assert_eq!(*fleet.said.lock(), ["200 a"]);
}

#[tokio::test(start_paused = true)]
async fn a_setup_or_teardown_whose_call_comes_back_is_refused_by_name() {
    let fleet = fleet().await;
    let said = fleet.get("/nodes/greets/greeting").text().await;
    let links = "/nodes/greets (exclusive) -> /nodes/b (shared) -> /nodes/greets (exclusive)";
    assert_eq!(said, format!("200 {}", refused(links)));

    // H3.9, P5.9: pinboard would wait for the end of this close, which waits for the call.
    fleet.get("/nodes/parts").send().await.assert_ok("parts");
    fleet
        .app(0)
        .worker
        .hosted::<Node>()
        .expect("hosted")
        .abort("parts");
    settle().await;
    let links = "/nodes/parts (exclusive) -> /nodes/b (shared) -> /nodes/parts (exclusive)";
    assert_eq!(*fleet.said.lock(), [format!("200 {}", refused(links))]);
}

#[tokio::test(start_paused = true)]
async fn the_chain_is_told_to_the_control_plane_and_to_nobody_else() {
    // W14.6, P5.8
    let fleet = fleet().await;
    fleet
        .get("/nodes/a/exclusive/nodes/b/shared/nodes/c")
        .send()
        .await
        .assert_ok("200 200 c");
    let told = fleet.header("/nodes/c", "pinboard-chain").expect("a chain");
    let links: Vec<_> = chain::read(&told)
        .expect("it is one")
        .into_iter()
        .map(|link| chain::Link::parse(link).expect("it is one"))
        .collect();
    let names: Vec<_> = links
        .iter()
        .map(|link| (link.name(), link.held()))
        .collect();
    assert_eq!(
        names,
        [
            ("/nodes/a", chain::Held::Exclusive),
            ("/nodes/b", chain::Held::Shared)
        ]
    );
    let calls: Vec<_> = links.iter().map(chain::Link::call).collect();
    assert!(calls[0].is_some() && calls[1].is_some() && calls[0] != calls[1]);
}

#[tokio::test(start_paused = true)]
async fn a_chain_counts_only_from_an_attestation_and_only_what_it_is_known_by_here() {
    // W8.8
    let fleet = fleet().await;
    let waiting = fleet.get("/nodes/a/shared/nodes/b/waits").begin().await;
    fleet.named("waits").reached(1).await;
    let real = fleet
        .header("/nodes/b/waits", "pinboard-chain")
        .expect("a chain");
    // From outside.
    let call = fleet.get("/nodes/a/alone").header("pinboard-chain", &real);
    let alone = call.begin().await;
    assert!(!alone.is_finished(), "it waits, like anybody");
    fleet.named("waits").open();
    waiting.await.expect("answered").assert_ok("200 waited");
    alone.await.expect("answered").assert_ok("alone");

    // Attested: names that nobody here goes by, what is over, and what no link is.
    let app = fleet.app(0);
    let attested = |chain: &[&str]| {
        let chain = chain.iter().map(|&link| link.to_owned()).collect();
        let claims = Claims::new("session-1", app.worker.domain().now())
            .with_caller("/nodes/b", 1)
            .with_chain(chain);
        let token = mint(app.worker.secret(), &claims);
        app.get("/nodes/a").header("pinboard-attestation", token)
    };
    let many = vec!["/nodes/a exclusive"; 51];
    for chain in [
        &["/nodes/a exclusive"][..],
        &["/nodes/a exclusive 0f.1", "/nodes/b shared 1f.1"],
        &[&real],
        &["/nodes/a"],
        &[],
        &many,
    ] {
        attested(chain).send().await.assert_ok("a");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_over_workers_go_fifty_deep_and_no_deeper() {
    // W14.3
    let fleet = fleet().await;
    for n in 0..=MAX_CALL_DEPTH + 1 {
        fleet.place(&format!("n{n}"), (n % 3) as usize);
    }
    let said = fleet
        .get(&format!("/nodes/top/down/{MAX_CALL_DEPTH}"))
        .text()
        .await;
    assert!(said.ends_with("200 bottom"), "{said}");
    let said = fleet
        .get(&format!("/nodes/top/down/{}", MAX_CALL_DEPTH + 1))
        .text()
        .await;
    assert!(
        said.ends_with("cluster calls may be 50 deep; this one would be deeper"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_counts_wrong_leads_no_chain_deeper() {
    // W14.3: what is known here of a chain counts, and not only what the last worker says of it.
    let fleet = fleet().await;
    fleet.forgets_depth(1);
    fleet.forgets_depth(2);
    for n in 0..300 {
        fleet.place(&format!("n{n}"), (n % 3) as usize);
    }
    let said = fleet.get("/nodes/top/down/299").text().await;
    assert!(
        said.ends_with("cluster calls may be 50 deep; this one would be deeper"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_chain_through_another_edition_is_not_seen_and_ends_at_the_turn_timeout() {
    // A worker that passes no chain on: what comes back waits, and for no longer than any turn.
    let fleet = fleet().await;
    fleet.other_edition(1);
    let said = fleet
        .get("/nodes/a/exclusive/nodes/b/shared/nodes/a")
        .text()
        .await;
    assert!(said.contains("turn timed out; retry"), "{said}");
}
