//! Leases that one node of the fleet has at a time (P8.1).

use std::time::Duration;

use super::scene::Scene;
use super::verdict::{Verdict, counts_down, holds, same};

const LONG: Duration = Duration::from_secs(1_000);

pub(super) async fn checks(scene: &Scene) {
    one_node_leads(scene).await;
    a_leader_stands_down(scene).await;
    leases_have_names(scene).await;
}

pub(super) async fn timed(scene: &Scene) {
    a_lease_expires_unless_it_is_renewed(scene).await;
}

async fn one_node_leads(scene: &Scene) {
    let rule = "P8.1 (one node at a time)";
    let name = lease(scene);
    leads(scene, &name, None, rule).await;
    for (node, ttl, has) in [
        ("a", LONG, true),
        ("b", LONG, false),
        ("a", 2 * LONG, true),
        ("b", LONG, false),
    ] {
        let led = scene.store.lead(&name, node, ttl).await.holds(rule);
        same(rule, &format!("whether {node} leads"), &led, &has);
    }
    let leader = scene.store.leader(&name).await.holds(rule);
    let Some((node, left)) = leader else {
        panic!("{rule}: expected a leader");
    };
    same(rule, "who leads", &node.as_str(), &"a");
    counts_down(rule, "the lease that was renewed", left, 2 * LONG);
}

async fn a_leader_stands_down(scene: &Scene) {
    let rule = "P8.1 (a leader stands down)";
    let name = lease(scene);
    scene.store.lead(&name, "a", LONG).await.holds(rule);
    scene.store.stand_down(&name, "b").await.holds(rule);
    leads(scene, &name, Some("a"), rule).await;
    scene.store.stand_down(&name, "a").await.holds(rule);
    scene.store.stand_down(&name, "a").await.holds(rule);
    leads(scene, &name, None, rule).await;
    let led = scene.store.lead(&name, "b", LONG).await.holds(rule);
    same(rule, "whether the next leads", &led, &true);
    scene.store.stand_down(&name, "a").await.holds(rule);
    leads(scene, &name, Some("b"), rule).await;
}

async fn leases_have_names(scene: &Scene) {
    let rule = "P8.1 (each lease has a leader of its own)";
    let (one, other) = (lease(scene), lease(scene));
    scene.store.lead(&one, "a", LONG).await.holds(rule);
    let led = scene.store.lead(&other, "b", LONG).await.holds(rule);
    same(rule, "whether another leads elsewhere", &led, &true);
    leads(scene, &one, Some("a"), rule).await;
    leads(scene, &other, Some("b"), rule).await;
}

async fn a_lease_expires_unless_it_is_renewed(scene: &Scene) {
    let rule = "P8.1 (a lease runs out)";
    let ttl = Duration::from_secs(2);
    let (name, other, renewed) = scene
        .in_time(ttl, rule, || {
            Box::pin(async move {
                let name = lease(scene);
                scene.store.lead(&name, "a", ttl).await.holds(rule);
                scene.wait(scene.just_before(ttl)).await;
                let other = scene.store.lead(&name, "b", ttl).await.holds(rule);
                let renewed = scene.store.lead(&name, "a", ttl).await.holds(rule);
                (name, other, renewed)
            })
        })
        .await;
    same(rule, "whether another leads before", &other, &false);
    same(rule, "whether the leader goes on", &renewed, &true);
    scene.wait(scene.just_before(ttl)).await;
    let led = scene.store.lead(&name, "b", ttl).await.holds(rule);
    holds(rule, "a renewed lease runs on", !led || !scene.virtual_time);
    scene.wait_out(ttl).await;
    let led = scene.store.lead(&name, "b", ttl).await.holds(rule);
    same(rule, "whether another leads then", &led, &true);
    scene.wait_out(ttl).await;
    leads(scene, &name, None, rule).await;
}

async fn leads(scene: &Scene, name: &str, expected: Option<&str>, rule: &str) {
    let leader = scene.store.leader(name).await.holds(rule);
    let leader = leader.map(|(node, _)| node);
    same(rule, "who leads", &leader.as_deref(), &expected);
}

fn lease(scene: &Scene) -> String {
    format!("lease-{}", scene.number())
}
