//! The published Python worker behind this pinboard (issue "pinboard", item 4).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::process::Running;
use super::rig::{Member, PATIENCE, Rig, Size, TOKEN};

/// A virtual environment with the published worker, made once for each version of what it needs.
pub(super) fn environment() -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _making = ONE_AT_A_TIME.lock();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let wanted = std::fs::read_to_string(sources.join("requirements.txt")).expect("requirements");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-worker");
    let python = home.join("bin/python");
    let mark = home.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    let _ = std::fs::remove_dir_all(&home);
    run(
        Command::new("python3").args(["-m", "venv"]).arg(&home),
        "on Debian: apt-get install python3 python3-venv",
    );
    run(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(sources.join("requirements.txt")),
        "the package index must be reachable",
    );
    std::fs::write(mark, wanted).expect("a mark");
    python
}

fn run(command: &mut Command, hint: &str) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({hint}): {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn start(rig: &Rig, member: &mut Member) {
    let mut command = Command::new(environment());
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/worker.py"))
        .env("PORT", member.port.to_string())
        .env("PINBOARD_URL", rig.nodes[0].url())
        .env("PINBOARD_TOKEN", TOKEN)
        .env("ADVERTISE_URL", member.url());
    for name in ["NODE_ENV", "ENVIRONMENT", "APP_ENV"] {
        command.env_remove(name);
    }
    let log = rig.log(&member.name);
    member.running = Some(Running::start(command, &log));
}

async fn get(rig: &Rig, path: &str) -> Option<Value> {
    let answer = rig
        .http
        .get(rig.url(path))
        .timeout(Duration::from_secs(5))
        .send()
        .await
        .ok()?;
    let success = answer.status().is_success();
    let answer = answer.json().await.ok()?;
    success.then_some(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_python_worker_is_at_home_behind_this_pinboard() {
    // The issue's item 4; W17.1, W17.4, P2.1, P2.6, P2.10, P3.4, P3.5, P5.2, P5.3
    environment();
    let mut rig = Rig::start(Size {
        nodes: 1,
        workers: 0,
        ..Size::default()
    })
    .await;
    let mut workers = [
        Member::new("python-0".to_owned()),
        Member::new("python-1".to_owned()),
    ];
    for worker in &mut workers {
        start(&rig, worker);
    }
    rig.python
        .extend(["python-0".to_owned(), "python-1".to_owned()]);
    let registered = async || {
        let listed = rig.operate(0, "/registry/workers").await?;
        (listed["workers"].as_array()?.len() == 2).then_some(listed)
    };
    let listed = rig.until("both Python workers register", registered).await;
    rig.until("ids are placed", async || {
        get(&rig, "/rooms/probe/who").await
    })
    .await;

    // HTTP.
    for count in 1..=3 {
        let answer = rig
            .http
            .post(rig.url("/rooms/a/increment"))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.json::<u64>().await.expect("a number"), count);
    }
    let who = get(&rig, "/rooms/a/who").await.expect("an answer");
    assert!(
        who["epoch"]
            .as_str()
            .is_some_and(|epoch| epoch.parse::<u64>().is_ok()),
        "{who}"
    );
    // Calls between instances, on one worker or across two.
    for index in 0..8 {
        let path = format!("/rooms/a/ask/b{index}");
        let answer = get(&rig, &path).await.expect("an answer");
        assert_eq!(answer["status"], 200, "{answer}");
        assert_eq!(answer["answer"]["caller"], "/rooms/a", "{answer}");
    }
    // Server-sent events, as they come.
    let mut events = rig
        .http
        .get(rig.url("/rooms/a/events"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        events.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let mut chunks = 0;
    let mut text = String::new();
    while let Some(chunk) = events.chunk().await.expect("a whole stream") {
        chunks += 1;
        text += std::str::from_utf8(&chunk).expect("text");
    }
    assert_eq!(
        text,
        "data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n"
    );
    assert!(chunks >= 3, "{chunks}");
    // WebSockets, with the close of the worker's choice.
    let url = rig.url("/rooms/a/echo").replace("http://", "ws://");
    let (mut socket, _) = tokio_tungstenite::connect_async(url)
        .await
        .expect("a socket");
    socket.send(Message::text("hello")).await.expect("sent");
    assert_eq!(
        socket.next().await.expect("a frame").expect("whole"),
        Message::text("HELLO")
    );
    socket.send(Message::text("bye")).await.expect("sent");
    match socket.next().await {
        Some(Ok(Message::Close(Some(frame)))) => {
            assert_eq!(
                (u16::from(frame.code), frame.reason.as_str()),
                (4321, "as you wish")
            );
        }
        other => panic!("expected the close frame, got {other:?}"),
    }

    // One id is wound down, and comes back under a higher epoch with fresh state.
    let epoch = |who: &Value| {
        who["epoch"]
            .as_str()
            .and_then(|epoch| epoch.parse::<u64>().ok())
    };
    let (status, answer) = rig
        .order(
            "/registry/wind_down",
            &json!({ "namespace": "/rooms", "id": "a", "deadline": 0 }),
        )
        .await;
    assert_eq!((status, &answer), (200, &json!({ "queued": true })));
    rig.until("the id has moved on", async || {
        let moved = get(&rig, "/rooms/a/who").await?;
        (epoch(&moved)? > epoch(&who)?).then_some(())
    })
    .await;
    let answer = rig
        .http
        .post(rig.url("/rooms/a/increment"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.json::<u64>().await.expect("a number"), 1);

    // One worker is cordoned: its ids move to the other.
    let cordoned = listed["workers"][0].clone();
    let order = json!({ "clientId": cordoned["clientId"], "deadline": null });
    assert_eq!(rig.order("/registry/drain", &order).await.0, 200);
    let (old, other) = if cordoned["advertiseUrl"] == workers[0].url() {
        (0, 1)
    } else {
        (1, 0)
    };
    let stays = u64::from(workers[other].process().pid());
    rig.until("every id lives on the other worker", async || {
        for index in 0..8 {
            let who = get(&rig, &format!("/rooms/b{index}/who")).await?;
            if who["pid"] != stays {
                return None;
            }
        }
        Some(())
    })
    .await;
    // SIGTERM: the drained worker exits, and the other by and by.
    workers[old].process().terminate();
    let status = workers[old].process().ended_within(PATIENCE).await;
    assert!(status.success(), "{status}\n{}", rig.logs());
    workers[other].process().terminate();
    let status = workers[other].process().ended_within(PATIENCE).await;
    assert!(status.success(), "{status}\n{}", rig.logs());
    rig.until("nobody is registered", async || {
        let listed = rig.operate(0, "/registry/workers").await?;
        listed["workers"].as_array()?.is_empty().then_some(())
    })
    .await;
}
