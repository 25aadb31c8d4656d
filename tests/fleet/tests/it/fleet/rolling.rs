//! The rolling deploy that `docs/fleet.md` describes, by its own script, under load.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::load::{Kind, Load, all_executed};
use super::process::Running;
use super::rig::{PATIENCE, Rig, Size, TOKEN, pinboard};

/// The script, told to leave stopping and starting to this test: it writes down what it wants.
fn script(rig: &Rig, orders: &Path) -> Command {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet/rolling-deploy.sh");
    let mut command = Command::new("bash");
    command
        .arg(file)
        .args(rig.workers.iter().map(super::rig::Member::url))
        .env("PINBOARD", pinboard())
        .env("PINBOARD_URL", rig.url_of(1, ""))
        .env("PINBOARD_OPERATOR_TOKEN", TOKEN)
        .env("STOP", r#"echo "stop $1" >> "$ORDERS""#)
        .env("START", r#"echo "start $1" >> "$ORDERS""#)
        .env("ORDERS", orders);
    command
}

async fn carry_out(rig: &mut Rig, order: &str) {
    let (what, url) = order.split_once(' ').expect("an order and a URL");
    let index = rig.workers.iter().position(|worker| worker.url() == url);
    let index = index.expect("a worker of this fleet");
    match what {
        "stop" => {
            rig.workers[index].process().terminate();
            let status = rig.workers[index].process().ended_within(PATIENCE).await;
            assert!(status.success(), "{status}\n{}", rig.logs());
            rig.workers[index].running = None;
        }
        "start" => rig.start_worker(index),
        other => panic!("{other}?"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_of_the_guide_rolls_a_fleet_under_load_without_an_error() {
    // P5.10, P3.4
    let mut rig = Rig::start(Size {
        nodes: 2,
        workers: 3,
        lease_ttl: Duration::from_secs(3),
    })
    .await;
    let before: Vec<u32> = (0..3)
        .map(|index| rig.workers[index].process().pid())
        .collect();
    let load = Load::start(&rig, "rolling", Kind::Mixed, 6, 8);
    let orders = rig.log("orders");
    let said = rig.log("rolling-deploy");
    let mut running = Running::start(script(&rig, &orders), &said);
    let mut done = 0;
    let status = loop {
        let given = std::fs::read_to_string(&orders).unwrap_or_default();
        let given: Vec<&str> = given.lines().collect();
        for order in &given[done..] {
            carry_out(&mut rig, order).await;
        }
        done = given.len();
        if let Some(status) = running.ended() {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let said = std::fs::read_to_string(&said).unwrap_or_default();
    assert!(status.success(), "{status}\n{said}\n{}", rig.logs());
    assert_eq!(done, 6, "three were stopped, three started: {said}");
    let outcome = load.end().await;
    for (index, old) in before.into_iter().enumerate() {
        assert_ne!(rig.workers[index].process().pid(), old);
    }
    rig.settled().await;
    all_executed(&rig, 0, &outcome.confirmed).await;
    let listed = rig.operate(0, "/registry/workers").await.expect("a list");
    for worker in listed["workers"].as_array().expect("workers") {
        assert_eq!(
            (&worker["draining"], &worker["cordoned"]),
            (&false.into(), &false.into())
        );
    }
    let activations = rig.check_activity();
    println!(
        "{} requests, {} errors, {} items admitted and executed, {activations} activations\n{said}",
        outcome.sent,
        outcome.errors.values().sum::<u64>(),
        outcome.items()
    );
    assert!(
        outcome.errors.is_empty(),
        "{:?}\n{said}\n{}",
        outcome.errors,
        rig.logs()
    );
    assert!(outcome.items() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_fails_takes_its_cordon_back() {
    let rig = Rig::start(Size {
        nodes: 2,
        workers: 2,
        lease_ttl: Duration::from_secs(2),
    })
    .await;
    let mut command = script(&rig, &rig.log("orders"));
    command.env("STOP", "exit 7");
    let said = rig.log("rolling-deploy");
    let status = Running::start(command, &said).ended_within(PATIENCE).await;
    assert!(!status.success());
    let said = std::fs::read_to_string(&said).unwrap_or_default();
    assert!(said.contains("cordoned"), "{said}");
    rig.until("nobody is cordoned", async || {
        let listed = rig.operate(0, "/registry/workers").await?;
        let workers = listed["workers"].as_array()?;
        workers
            .iter()
            .all(|worker| worker["cordoned"] == false)
            .then_some(())
    })
    .await;
}
