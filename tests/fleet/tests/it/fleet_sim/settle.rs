//! Coming to rest (S8.8).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pinboard::store::{PlacementKey, RegistryStore as _};
use pinboard::testing::InstanceKey;

use super::client::{Client, NS};
use super::fleet::Fleet;

/// From look to look.
const LAP: Duration = Duration::from_secs(1);

/// Waits until every one of `ids` is served through every node by the one who is registered as its holder; says who is not
/// when that takes longer than `bound`.
pub(super) async fn settle(fleet: &Arc<Fleet>, client: &Client, ids: &[String], bound: Duration) {
    let start = fleet.sim.elapsed();
    let mut unsettled: Vec<&String> = ids.iter().collect();
    loop {
        let mut rest = Vec::new();
        let mut why = String::new();
        for id in unsettled {
            if let Err(reason) = is_settled(fleet, client, id).await {
                why = format!("{id}: {reason}");
                rest.push(id);
            }
        }
        unsettled = rest;
        let took = fleet.sim.elapsed() - start;
        if unsettled.is_empty() {
            return fleet.sim.note(format!("at rest after {took:?}"));
        }
        if took > bound {
            return fleet.watch.violation(format!(
                "S8.8: {} ids are not at rest after {took:?}, such as {why}",
                unsettled.len()
            ));
        }
        fleet.domain.sleep(LAP).await;
    }
}

async fn is_settled(fleet: &Arc<Fleet>, client: &Client, id: &str) -> Result<(), String> {
    for node in 0..fleet.nodes.len() {
        match client.increment(node, id).await {
            Some(StatusCode::OK) => {}
            status => return Err(format!("{status:?} through node {node}")),
        }
    }
    let key = InstanceKey::new(NS, id);
    let row = fleet.store.row(&PlacementKey::single(NS, id)).await;
    let row = row.ok().flatten().ok_or("it is not placed")?;
    fleet.watch.see_epoch(id, row.epoch);
    let alive = fleet.alive();
    let holders = alive.iter().filter(|worker| {
        !worker.is_expired() && worker.session().is_some() && worker.instances().contains(&key)
    });
    let holders: Vec<_> = holders.filter_map(|worker| worker.session()).collect();
    match &holders[..] {
        [one] if **one == *row.session.as_str() => {}
        other => {
            return Err(format!(
                "{} hold it, and {} should",
                other.len(),
                row.session
            ));
        }
    }
    let latest = fleet
        .watch
        .ledger
        .writes(&key)
        .last()
        .map(|write| write.epoch);
    match latest {
        Some(epoch) if epoch == row.epoch => Ok(()),
        other => Err(format!(
            "written under {other:?}, placed under {}",
            row.epoch
        )),
    }
}
