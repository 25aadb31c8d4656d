//! Control messages ride acks (P2.10).

use std::time::Duration;

use pinboard::store::{MessageBody, SessionId};
use serde_json::{Value, json};

use super::rig::{Node, Worker, World, heartbeat, merged, quiet_beat, room};

async fn tell(world: &World, session: &str, orders: &[(&str, Option<u64>)]) {
    let messages = orders.iter().map(|(id, deadline)| MessageBody {
        key: room(id),
        deadline: deadline.map(Duration::from_secs),
    });
    let session = SessionId::new(session);
    let queued = world
        .store
        .queue_messages(&session, messages.collect())
        .await;
    assert!(queued.expect("the store"));
}

async fn hear(node: &Node, session: &str, acks: &[&str]) -> Vec<Value> {
    let acks = match acks {
        [] => json!({}),
        acks => json!({"acks": acks}),
    };
    let ack = heartbeat(node, merged(quiet_beat(session), acks))
        .await
        .ok();
    let messages = ack.get("messages").cloned().unwrap_or(json!([]));
    messages.as_array().expect("a list").clone()
}

#[tokio::test(start_paused = true)]
async fn messages_come_with_every_ack_until_they_are_confirmed() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    assert!(hear(&node, &session, &[]).await.is_empty());
    tell(&world, &session, &[("blue", Some(60)), ("red", None)]).await;

    let heard = hear(&node, &session, &[]).await;
    let names: Vec<_> = heard
        .iter()
        .map(|message| message["msgId"].as_str().expect("an id").to_owned())
        .collect();
    // W5.5, to the member.
    assert_eq!(
        heard,
        [
            json!({"msgId": names[0], "type": "wind_down", "ns": "/rooms", "id": "blue", "deadline": 60}),
            json!({"msgId": names[1], "type": "wind_down", "ns": "/rooms", "id": "red", "deadline": null}),
        ]
    );

    // Counted down by the time that it waited.
    world.wait(Duration::from_secs(12)).await;
    let heard = hear(&node, &session, &[]).await;
    let left = heard[0]["deadline"].as_f64().expect("a number");
    assert!((left - 48.0).abs() < 0.1, "{left}");
    assert_eq!(heard[1]["deadline"], json!(null));

    let heard = hear(&node, &session, &[&names[0], "no such message"]).await;
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0]["msgId"], json!(names[1]));
    assert!(hear(&node, &session, &[&names[1]]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_is_told_as_nothing_left() {
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    tell(&world, &session, &[("blue", Some(5))]).await;
    world.wait(Duration::from_secs(9)).await;
    let heard = hear(&node, &session, &[]).await;
    assert_eq!(heard[0]["deadline"].as_f64(), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn more_messages_than_one_heartbeat_can_confirm_come_in_turns() {
    const IDS: usize = 110_000;
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let names: Vec<_> = (0..IDS).map(|n| format!("room-{n}")).collect();
    let orders: Vec<_> = names.iter().map(|id| (&**id, Some(3_600))).collect();
    tell(&world, &session, &orders).await;

    let (mut heard, mut acks, mut turns) = (Vec::new(), Vec::<String>::new(), 0);
    loop {
        let confirmed: Vec<_> = acks.iter().map(String::as_str).collect();
        let messages = hear(&node, &session, &confirmed).await;
        if messages.is_empty() {
            break;
        }
        turns += 1;
        acks = messages
            .iter()
            .map(|message| message["msgId"].as_str().expect("an id").to_owned())
            .collect();
        heard.extend(messages.iter().map(|message| message["id"].clone()));
    }
    assert!(turns > 1, "{turns}");
    assert_eq!(heard.len(), IDS);
    assert_eq!(heard[IDS - 1], json!(format!("room-{}", IDS - 1)));
}

#[tokio::test(start_paused = true)]
async fn confirmations_that_come_late_or_twice_leave_the_newest_order_to_be_told() {
    // P2.10, P3.5, and `cases.md`: "control messages delivered late, twice, out of order: the end state is that of the newest"
    let world = World::new().await;
    let node = world.node();
    let session = Worker::new(&world, 1).register(&node).await;
    let name = |heard: &[Value]| heard[0]["msgId"].as_str().expect("an id").to_owned();
    tell(&world, &session, &[("blue", Some(60))]).await;
    let first = hear(&node, &session, &[]).await;
    tell(&world, &session, &[("blue", None)]).await;
    let second = hear(&node, &session, &[&name(&first)]).await;
    assert_eq!((second.len(), &second[0]["deadline"]), (1, &json!(null)));
    tell(&world, &session, &[("blue", Some(30))]).await;
    // An old confirmation comes once more, and the one of the order that has just been replaced.
    for late in [&first, &second, &first] {
        let heard = hear(&node, &session, &[&name(late)]).await;
        assert_eq!((heard.len(), &heard[0]["deadline"]), (1, &json!(30)));
    }
    let newest = hear(&node, &session, &[]).await;
    assert!(hear(&node, &session, &[&name(&newest)]).await.is_empty());
    assert!(hear(&node, &session, &[&name(&first)]).await.is_empty());
}
