//! A fleet that answers what a test says.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pinboard::cli::{Cli, CliError, World, run};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_domain::Domain;

/// One answer.
pub(super) enum Answer {
    Says(u16, &'static str),
    Redirects(&'static str),
    Refuses,
    /// There is none, and none will come.
    Hangs,
}

/// Answers in order, and keeps what it was asked.
#[derive(Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Fetch>>,
}

impl Fetcher for Scripted {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        self.asked.lock().push(fetch);
        let mut headers = HeaderMap::new();
        let (status, body) = match self.answers.lock().pop_front().expect("an answer") {
            Answer::Says(status, body) => (status, body),
            Answer::Redirects(to) => {
                headers.insert("location", to.parse().expect("a header"));
                (302, "")
            }
            Answer::Refuses => {
                let refused = std::io::ErrorKind::ConnectionRefused.into();
                return ready(Err(FetchError::Connect(refused))).boxed();
            }
            Answer::Hangs => return pending().boxed(),
        };
        ready(Ok(Fetched {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: body.into(),
        }))
        .boxed()
    }
}

/// What came of a command line.
pub(super) struct Done {
    pub(super) outcome: Result<(), CliError>,
    pub(super) out: String,
    pub(super) asked: Vec<Fetch>,
}

impl Done {
    pub(super) fn error(&self) -> String {
        let error = self.outcome.as_ref().expect_err("a failure");
        error.to_string()
    }
}

/// Runs a command line against these answers; `interrupt` ends what goes on by itself.
pub(super) async fn done(
    line: &[&str],
    answers: impl IntoIterator<Item = Answer>,
    interrupt: impl Future<Output = ()>,
) -> Done {
    let words = ["pinboard"].iter().chain(line);
    let cli = Cli::read(words.copied()).expect("a command line");
    let fleet = Arc::new(Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        ..Scripted::default()
    });
    let world = World {
        fetcher: fleet.clone(),
        domain: Domain::real(),
    };
    let mut out = Vec::new();
    let command = cli.command.expect("a command");
    let outcome = run(command, &cli.remote, world, interrupt, &mut out).await;
    let asked = fleet.asked.lock().clone();
    Done {
        outcome,
        out: String::from_utf8(out).expect("text"),
        asked,
    }
}

/// As [`done`], of a command that ends by itself.
pub(super) async fn answered(line: &[&str], answer: Answer) -> Done {
    done(line, [answer], pending()).await
}
