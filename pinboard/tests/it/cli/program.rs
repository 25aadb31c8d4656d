//! The program itself, as a process.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use pinboard::upstream::{Fetch, Fetched, Fetcher as _, HttpFetcher};
use pinned_domain::Domain;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use url::Url;

/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(20);

fn program(vars: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinboard"));
    command
        .env_clear()
        .envs(vars.iter().copied())
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a program that ends by itself has ended.
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

async fn ended(vars: &[(&str, &str)], args: &[&str]) -> Ended {
    let output = program(vars, args).output();
    let output = Domain::real().timeout(SOON, output).await;
    let output = output.expect("in time").expect("a program");
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A node in a process of its own.
struct Node {
    child: Child,
    url: String,
    /// What it has said on standard error until it served.
    block: String,
    out: Lines<BufReader<ChildStdout>>,
    _err: Lines<BufReader<ChildStderr>>,
}

impl Node {
    async fn start(vars: &[(&str, &str)]) -> Self {
        let mut child = program(&[&[("PORT", "0")], vars].concat(), &[])
            .spawn()
            .expect("a program");
        let out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut err = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut block = String::new();
        let read = async {
            // Its last line is this one, or those of the token.
            while let Some(line) = err.next_line().await.expect("text") {
                block.push_str(&line);
                block.push('\n');
                let is_last =
                    line.starts_with("  limits") && vars.iter().any(|(name, _)| is_key(name));
                if is_last || line.starts_with("  operator") {
                    break;
                }
            }
        };
        Domain::real().timeout(SOON, read).await.expect("in time");
        let (_, url) = block.split_once("serving on ").expect("a start block");
        let url = url.split_whitespace().next().expect("a URL").to_owned();
        Self {
            child,
            url,
            block,
            out,
            _err: err,
        }
    }

    async fn get(&self, path: &str, token: Option<&str>) -> Fetched {
        let url = Url::parse(&format!("{}{path}", self.url)).expect("a URL");
        let mut fetch = Fetch::get(url);
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().expect("a header");
            fetch.headers.insert("authorization", value);
        }
        let answer = HttpFetcher::new(Domain::real()).fetch(fetch).await;
        answer.expect("an answer")
    }

    /// Reads `/readyz` until it is 200.
    async fn ready(&self) {
        let ready = async {
            while self.get("/readyz", None).await.status != 200 {
                Domain::real().sleep(Duration::from_millis(10)).await;
            }
        };
        Domain::real().timeout(SOON, ready).await.expect("ready");
    }

    async fn run(&self, token: &str, args: &[&str]) -> Ended {
        let vars = [
            ("PINBOARD_URL", &*self.url),
            ("PINBOARD_OPERATOR_TOKEN", token),
        ];
        ended(&vars, args).await
    }

    fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    async fn end(&mut self) -> ExitStatus {
        let ended = Domain::real().timeout(SOON, self.child.wait()).await;
        ended.expect("in time").expect("a process")
    }

    /// What it has logged, to its end.
    async fn log(&mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.out.next_line().await.expect("text") {
            lines.push(serde_json::from_str(&line).expect("one JSON object a line"));
        }
        lines
    }
}

fn is_key(name: &str) -> bool {
    ["PINBOARD_TOKEN", "PINBOARD_PASSPORT"].contains(&name)
}

fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("it runs");
}

// P1.2, P1.4, P1.6
#[tokio::test]
async fn without_any_environment_it_serves_in_dev_mode_and_says_so() {
    let mut command = program(&[], &[]);
    // Where 8080 is taken by another, that is all that it says.
    let mut child = command.spawn().expect("a program");
    let mut said = String::new();
    let mut err = child.stderr.take().expect("piped");
    let mut buffer = [0; 4096];
    while !said.contains("operator PINBOARD_URL") && !said.contains("PORT and BIND say where") {
        let read = Domain::real().timeout(SOON, err.read(&mut buffer)).await;
        let read = read.expect("in time").expect("text");
        said.push_str(std::str::from_utf8(&buffer[..read]).expect("text"));
    }
    if said.contains("DEV MODE") {
        assert!(said.contains("http://127.0.0.1:8080"), "{said}");
        send(&child, Signal::TERM);
        let status = child.wait().await.expect("a process");
        assert_eq!(status.code(), Some(0), "{said}");
    } else {
        let status = child.wait().await.expect("a process");
        assert_eq!(status.code(), Some(1), "{said}");
    }
}

// P1.4, P1.5, P1.6
#[tokio::test]
async fn a_dev_node_shows_its_token_once_and_ends_on_sigterm() {
    let mut node = Node::start(&[]).await;
    assert!(node.url.starts_with("http://127.0.0.1:"), "{}", node.url);
    assert!(node.block.contains("DEV MODE"), "{}", node.block);
    let (_, token) = node.block.split_once("  token    ").expect("a token");
    let token = token.split_whitespace().next().expect("a token").to_owned();
    node.ready().await;
    let workers = node.run(&token, &["workers"]).await;
    assert_eq!(
        (workers.code, &*workers.out),
        (Some(0), "no workers\n"),
        "{}",
        workers.err
    );

    node.signal(Signal::TERM);
    assert_eq!(node.end().await.code(), Some(0));
    let log = node.log().await;
    let said = |text: &str| {
        log.iter().any(|line| {
            line["message"]
                .as_str()
                .is_some_and(|said| said.contains(text))
        })
    };
    assert!(said("DEV MODE") && said("stopped"), "{log:?}");
    assert!(!format!("{log:?}").contains(&token));
}

// Issue 4, 'Shown by'
#[tokio::test]
async fn a_node_with_a_passport_answers_healthz() {
    let mut node = Node::start(&[
        ("BIND", "127.0.0.1"),
        ("REDIS_URL", "memory:"),
        ("PINBOARD_LEASE_TTL_MS", "1000"),
        ("OPS", "s3cret"),
        (
            "PINBOARD_PASSPORT",
            r#"{"providers": [{"type": "staticToken", "id": "keys", "keys": [
                {"name": "ops", "token": {"env": "OPS"}, "scopes": ["pinboard:operator"],
                 "claims": {"pinboard": {"namespaces": ["*"], "hostnames": ["*"], "envs": ["*"]}}}]}]}"#,
        ),
    ])
    .await;
    assert_eq!(node.get("/healthz", None).await.status, 200);
    node.ready().await;
    // P3.6
    assert_eq!(node.get("/metrics", None).await.status, 401);
    let metrics = node.get("/metrics", Some("s3cret")).await;
    let metrics = String::from_utf8(metrics.body.to_vec()).expect("text");
    for name in [
        "pinboard_placement_resolutions_total{outcome=\"no-backends\"} 0",
        "pinboard_store_round_trip_seconds_bucket{op=\"sessions_since\"",
        "pinboard_workers{state=\"open\"} 0",
        "pinboard_license_epoch 0",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    // P1.2
    for command in ["workers", "stats", "health", "overview", "events"] {
        for args in [&[command][..], &[command, "--json"]] {
            let ended = node.run("s3cret", args).await;
            assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
        }
    }
    let refused = node.run("s3cret", &["drain", "nobody"]).await;
    assert_eq!((refused.code, &*refused.out), (Some(1), ""));
    assert!(
        refused.err.starts_with("pinboard: forbidden"),
        "{}",
        refused.err
    );
    let unknown = node.run("wrong", &["workers"]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.err.contains("does not know the token"),
        "{}",
        unknown.err
    );

    node.signal(Signal::INT);
    assert_eq!(node.end().await.code(), Some(0));
    let log = node.log().await;
    assert!(!format!("{log:?}{}", node.block).contains("s3cret"));
}

// P1.3, P1.4
#[tokio::test]
async fn what_cannot_be_used_ends_the_start_with_one_line() {
    for (vars, line) in [
        (
            &[("PORT", "x")][..],
            "pinboard: PORT is \"x\"; it takes a port from 0 to 65535\n",
        ),
        (
            &[("REDIS_URL", "redis://h")],
            "pinboard: PINBOARD_PASSPORT is not set",
        ),
        (
            &[("NODE_ENV", "production")],
            "pinboard: NODE_ENV says production",
        ),
        (
            &[("PINBOARD_PASSPORT", "[]")],
            "pinboard: PINBOARD_PASSPORT is invalid: ",
        ),
        (
            &[("PINBOARD_HOSTNAME_AWARE", "on")],
            "pinboard: PINBOARD_HOSTNAME_AWARE is on",
        ),
    ] {
        let ended = ended(vars, &[]).await;
        assert_eq!((ended.code, &*ended.out), (Some(1), ""), "{vars:?}");
        assert!(ended.err.starts_with(line), "{}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("a port").port().to_string();
    let ended = ended(&[("PORT", &port), ("PINBOARD_TOKEN", "t")], &[]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains(&format!("127.0.0.1:{port}")),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("PORT and BIND say where"),
        "{}",
        ended.err
    );
}

// P3.6, P12.4
#[tokio::test]
async fn a_node_waits_for_its_store_and_says_that_it_is_not_ready() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", gone.local_addr().expect("a port"));
    drop(gone);
    let passport = r#"{"providers": [{"type": "staticToken", "id": "keys", "keys": [
        {"name": "ops", "token": "t", "scopes": ["pinboard:operator"]}]}]}"#;
    let mut node = Node::start(&[
        ("BIND", "127.0.0.1"),
        ("REDIS_URL", &url),
        ("PINBOARD_PASSPORT", passport),
    ])
    .await;
    assert_eq!(node.get("/healthz", None).await.status, 200);
    assert_eq!(node.get("/readyz", None).await.status, 503);
    node.signal(Signal::TERM);
    assert_eq!(node.end().await.code(), Some(0));
}

// P1.6
#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut node = Node::start(&[("PINBOARD_TOKEN", "t")]).await;
    node.ready().await;
    node.signal(Signal::TERM);
    // The first one is being followed.
    while let Some(line) = node.out.next_line().await.expect("text") {
        if line.contains("\"stopping\"") {
            break;
        }
    }
    assert_eq!(node.get("/readyz", None).await.status, 503);
    node.signal(Signal::TERM);
    assert_eq!(node.end().await.code(), Some(128 + 15));
}

// P1.2
#[tokio::test]
async fn a_mistake_in_the_command_line_is_another_code() {
    for args in [
        &["nope"][..],
        &["drain"],
        &["--json"],
        &["wind-down", "a/b"],
    ] {
        let ended = ended(&[], args).await;
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}");
        assert!(!ended.err.is_empty(), "{args:?}");
    }
    let help = ended(&[], &["--help"]).await;
    assert_eq!(help.code, Some(0));
    let version = ended(&[], &["--version"]).await;
    assert_eq!(
        version.out,
        concat!("pinboard ", env!("CARGO_PKG_VERSION"), "\n")
    );
    // P1.5
    let vars = [("PINBOARD_OPERATOR_TOKEN", "s3cret")];
    let help = self::ended(&vars, &["--help"]).await;
    assert!(!help.out.contains("s3cret"), "{}", help.out);
}

// P1.2
#[tokio::test]
async fn nobody_there_is_said_with_what_to_do() {
    let ended = ended(&[("PINBOARD_URL", "http://127.0.0.1:1")], &["workers"]).await;
    assert_eq!((ended.code, &*ended.out), (Some(1), ""));
    assert!(
        ended.err.contains("cannot reach http://127.0.0.1:1"),
        "{}",
        ended.err
    );
}

// P1.2
#[tokio::test]
async fn events_are_followed_until_ctrl_c() {
    let node = Node::start(&[("PINBOARD_TOKEN", "t")]).await;
    node.ready().await;
    let vars = [
        ("PINBOARD_URL", &*node.url),
        ("PINBOARD_OPERATOR_TOKEN", "t"),
    ];
    let mut follower = program(&vars, &["events", "--follow"])
        .spawn()
        .expect("a program");
    let mut out = BufReader::new(follower.stdout.take().expect("piped")).lines();
    let first = Domain::real().timeout(SOON, out.next_line()).await;
    let first = first.expect("in time").expect("text").expect("an event");
    assert!(first.contains("quarantine"), "{first}");
    send(&follower, Signal::INT);
    let status = follower.wait().await.expect("a process");
    assert_eq!(status.code(), Some(0));

    // Whoever reads has had enough: no failure, and no panic.
    let mut follower = program(&vars, &["events", "--follow"])
        .spawn()
        .expect("a program");
    drop(follower.stdout.take());
    let mut err = follower.stderr.take().expect("piped");
    let ended = Domain::real().timeout(SOON, follower.wait()).await;
    assert_eq!(ended.expect("in time").expect("a process").code(), Some(0));
    let mut said = String::new();
    err.read_to_string(&mut said).await.expect("text");
    assert_eq!(said, "");
}
