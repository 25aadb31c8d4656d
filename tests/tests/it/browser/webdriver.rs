//! A small client of the W3C WebDriver protocol, for headless Chromium through its driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::Process;

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// How long a condition on a page may take to come true, in milliseconds.
const PATIENCE: u32 = 30_000;

const ARGUMENTS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A browser with a fresh profile; dropping it closes it.
pub(super) struct Browser {
    agent: ureq::Agent,
    session: String,
    profile: PathBuf,
    _driver: Process,
}

impl Browser {
    pub(super) fn start() -> Self {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0");
        let (driver, line) = Process::start(command, "started successfully on port ");
        let port: String = line.chars().filter(char::is_ascii_digit).collect();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(Duration::from_millis(u64::from(2 * PATIENCE))))
            .build()
            .new_agent();
        let profile = fresh_profile();
        let arguments = ARGUMENTS.map(str::to_owned).into_iter();
        let arguments: Vec<String> = arguments
            .chain([format!("--user-data-dir={}", profile.display())])
            .collect();
        let capabilities = json!({
            "browserName": "chrome",
            "timeouts": { "script": PATIENCE },
            "goog:chromeOptions": { "args": arguments },
        });
        let mut browser = Self {
            agent,
            session: format!("http://127.0.0.1:{port}/session"),
            profile,
            _driver: driver,
        };
        let created = browser.post(
            "",
            json!({ "capabilities": { "alwaysMatch": capabilities } }),
        );
        let id = created["sessionId"].as_str().expect("a session has an id");
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    /// Opens a tab, without going to it, and answers its handle.
    pub(super) fn new_tab(&self) -> String {
        let tab = self.post("/window/new", json!({ "type": "tab" }));
        tab["handle"]
            .as_str()
            .expect("a tab has a handle")
            .to_owned()
    }

    pub(super) fn switch_to(&self, tab: &str) {
        self.post("/window", json!({ "handle": tab }));
    }

    pub(super) fn close_tab(&self) {
        self.delete("/window");
    }

    pub(super) fn go_to(&self, url: &str) {
        self.post("/url", json!({ "url": url }));
    }

    pub(super) fn clear(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/clear"), json!({}));
    }

    pub(super) fn type_into(&self, selector: &str, keys: &str) {
        let element = self.element(selector);
        self.post(
            &format!("/element/{element}/value"),
            json!({ "text": keys }),
        );
    }

    /// Waits until a JavaScript expression holds on the current page; the page is asked again whenever it changes.
    pub(super) fn wait_until(&self, condition: &str) {
        let script = format!(
            "const done = arguments[0];
             const holds = () => {condition};
             if (holds()) return done(true);
             const watch = new MutationObserver(() => {{ if (holds()) {{ watch.disconnect(); done(true); }} }});
             watch.observe(document, {{ subtree: true, childList: true, characterData: true, attributes: true }});"
        );
        self.post("/execute/async", json!({ "script": script, "args": [] }));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post(
            "/element",
            json!({ "using": "css selector", "value": selector }),
        );
        found[ELEMENT]
            .as_str()
            .expect("an element has an id")
            .to_owned()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        let answer = self
            .agent
            .post(format!("{}{path}", self.session))
            .send_json(&body);
        let value = value_of(answer);
        assert!(
            value.get("error").is_none(),
            "{path} {body} failed, and Chromium comes with `apt-get install chromium chromium-driver`: {}",
            value["message"]
        );
        value
    }

    fn delete(&self, path: &str) {
        value_of(self.agent.delete(format!("{}{path}", self.session)).call());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Also after a failed assertion: the driver closes the browser only when it is told to.
        let _ = self.agent.delete(&self.session).call();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn value_of(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Value {
    let mut answer: Value = answer
        .and_then(|mut answer| answer.body_mut().read_json())
        .expect("the driver answers in JSON");
    answer["value"].take()
}

fn fresh_profile() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "chromium-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
