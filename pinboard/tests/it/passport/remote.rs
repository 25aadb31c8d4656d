//! Key sets behind URLs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use pinboard::passport::{Denied, Passport};
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_testing::sim::Sim;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::issuer::{
    START, SigningKey, claims, document, ec, ed, key_set, other_ec, other_ed, provider, rsa,
    small_rsa, with, without,
};
use super::support::{bearer, name};

const URL: &str = "https://issuer.example/keys?tenant=blue";

/// A fetch that waits, and where its answer goes.
type Asked = (Fetch, oneshot::Sender<Result<Fetched, FetchError>>);

/// A fetcher whose answers are given by hand.
#[derive(Clone, Default)]
struct Script {
    asked: Arc<Mutex<Vec<Asked>>>,
    /// What is answered at once, to every fetch.
    standing: Arc<Mutex<Option<Value>>>,
    count: Arc<Mutex<usize>>,
}

impl Fetcher for Script {
    fn fetch(&self, fetch: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        *self.count.lock() += 1;
        if let Some(keys) = &*self.standing.lock() {
            return futures_util::future::ready(Ok(answer(StatusCode::OK, &keys.to_string())))
                .boxed();
        }
        let (sender, receiver) = oneshot::channel();
        self.asked.lock().push((fetch, sender));
        receiver
            .map(|answer| answer.unwrap_or(Err(FetchError::Timeout(Duration::ZERO))))
            .boxed()
    }
}

impl Script {
    /// Answers every fetch from now on with these keys.
    fn stand(&self, keys: &[SigningKey]) {
        *self.standing.lock() = Some(key_set(keys));
    }

    fn count(&self) -> usize {
        *self.count.lock()
    }

    /// Answers the fetch that waits.
    fn answer(&self, with: Result<Fetched, FetchError>) {
        let (_, sender) = self.asked.lock().pop().expect("a fetch that waits");
        assert!(sender.send(with).is_ok(), "somebody waits for it");
    }
}

fn answer(status: StatusCode, body: &str) -> Fetched {
    Fetched {
        status,
        headers: HeaderMap::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// Runs a test against a provider whose keys are behind [`URL`].
fn run<F, Fut>(test: F)
where
    F: FnOnce(Passport, Script, Sim) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Sim::run(1, move |sim| async move {
        let (passport, script) = passport(&sim);
        test(passport, script, sim.clone()).await;
    });
}

fn passport(sim: &Sim) -> (Passport, Script) {
    let script = Script::default();
    let fetcher: Arc<dyn Fetcher> = Arc::new(script.clone());
    let json = with(
        &document(provider(json!({"url": URL}))),
        "namespaces",
        json!({"/closed": {"allow": "authenticated"}}),
    );
    let passport = Passport::parse(&json.to_string(), |_| None, &sim.domain(), &fetcher);
    (passport.expect("a passport"), script)
}

async fn seconds(sim: &Sim, seconds: u64) {
    sim.domain().sleep(Duration::from_secs(seconds)).await;
}

/// Lets everything that can run do so.
async fn settle(sim: &Sim) {
    sim.domain().sleep(Duration::from_millis(1)).await;
}

async fn is_alice(passport: &Passport, token: &str) -> bool {
    name(passport, token).await.as_deref() == Some("alice")
}

// P7.3
#[test]
fn keys_are_fetched_when_they_are_first_needed() {
    run(|passport, script, sim| async move {
        assert_eq!(script.count(), 0);
        let token = ed().sign(&claims());
        let first = sim.domain().spawn({
            let (passport, token) = (passport.clone(), token.clone());
            async move { is_alice(&passport, &token).await }
        });
        settle(&sim).await;
        {
            let asked = script.asked.lock();
            let (fetch, _) = &asked[0];
            assert_eq!((fetch.method.as_str(), fetch.url.as_str()), ("GET", URL));
            assert!(fetch.limit <= 1 << 20 && fetch.timeout <= Duration::from_secs(10));
            assert!(fetch.addresses.is_none());
        }
        script.answer(Ok(answer(StatusCode::OK, &key_set(&[ed()]).to_string())));
        assert_eq!(first.await, Ok(true));
        // Known from now on.
        assert!(is_alice(&passport, &token).await);
        assert!(
            passport
                .admit("/closed", &bearer(&token), false)
                .now()
                .expect("ready")
                .is_ok()
        );
        assert_eq!(script.count(), 1);
    });
}

// P7.3
#[test]
fn keys_can_be_fetched_before_they_are_needed() {
    run(|passport, script, sim| async move {
        script.stand(&[ed()]);
        passport.warm_up();
        settle(&sim).await;
        assert_eq!(script.count(), 1);
        let headers = bearer(&ed().sign(&claims()));
        assert!(
            passport
                .admit("/closed", &headers, false)
                .now()
                .expect("ready")
                .is_ok()
        );
        passport.warm_up();
        settle(&sim).await;
        assert_eq!(script.count(), 1);
    });
}

// P7.3
#[test]
fn an_unknown_key_is_asked_for_at_most_once_a_minute() {
    run(|passport, script, sim| async move {
        script.stand(&[ed()]);
        assert!(is_alice(&passport, &ed().sign(&claims())).await);
        // Rotated at once: the minute has to pass.
        script.stand(&[ed(), ec()]);
        let rotated = ec().sign(&claims());
        for _ in 0..59 {
            let headers = bearer(&rotated);
            let answer = passport.admit("/closed", &headers, false).now();
            assert_eq!(answer.expect("no wait"), Err(Denied::Unauthenticated));
            seconds(&sim, 1).await;
        }
        assert_eq!(script.count(), 1);
        seconds(&sim, 1).await;
        assert!(is_alice(&passport, &rotated).await);
        assert_eq!(script.count(), 2);
        // Nobody can make it fetch more by making up keys.
        for _ in 0..10 {
            assert!(!is_alice(&passport, &other_ed().sign(&claims())).await);
        }
        assert_eq!(script.count(), 2);
    });
}

// P7.3
#[test]
fn only_what_could_be_a_token_of_the_issuer_makes_it_fetch() {
    run(|passport, script, _| async move {
        script.stand(&[ed()]);
        let claim = |name: &str, value: Value| other_ed().sign(&with(&claims(), name, value));
        for token in [
            "t0ken".to_owned(),
            "a.b.c".to_owned(),
            claim("iss", json!("https://evil.example")),
            claim("aud", json!("other")),
            claim("exp", json!(START - 60)),
            claim("nbf", json!(START + 60)),
            other_ed().sign_as(&with(&other_ed().header(), "alg", json!("none")), &claims()),
            other_ed().sign_as(&with(&other_ed().header(), "crit", json!(["a"])), &claims()),
        ] {
            assert!(!is_alice(&passport, &token).await);
        }
        assert_eq!(script.count(), 0);
    });
}

// P7.3
#[test]
fn a_token_that_names_no_key_of_several_is_not_asked_for() {
    run(|passport, script, sim| async move {
        script.stand(&[ed(), ec()]);
        let nameless = ed().sign_as(&without(&ed().header(), "kid"), &claims());
        assert!(!is_alice(&passport, &nameless).await);
        assert_eq!(script.count(), 1);
        seconds(&sim, 60).await;
        assert!(!is_alice(&passport, &nameless).await);
        assert_eq!(script.count(), 1);
    });
}

// P7.3
#[test]
fn many_who_wait_share_one_fetch() {
    run(|passport, script, sim| async move {
        let waiting: Vec<_> = (0..50)
            .map(|index| {
                let passport = passport.clone();
                let sub = index.to_string();
                let token = ed().sign(&with(&claims(), "sub", json!(sub)));
                sim.domain()
                    .spawn(async move { name(&passport, &token).await == Some(sub) })
            })
            .collect();
        settle(&sim).await;
        assert_eq!(script.count(), 1);
        script.answer(Ok(answer(StatusCode::OK, &key_set(&[ed()]).to_string())));
        for done in join_all(waiting).await {
            assert_eq!(done, Ok(true));
        }
        assert_eq!(script.count(), 1);
    });
}

// P7.3
#[test]
fn one_who_waits_and_leaves_does_not_end_the_fetch_of_others() {
    run(|passport, script, sim| async move {
        let token = ed().sign(&claims());
        let [first, second] = [(), ()].map(|()| {
            let (passport, token) = (passport.clone(), token.clone());
            sim.domain()
                .spawn(async move { is_alice(&passport, &token).await })
        });
        settle(&sim).await;
        first.abort();
        settle(&sim).await;
        script.answer(Ok(answer(StatusCode::OK, &key_set(&[ed()]).to_string())));
        assert_eq!(second.await, Ok(true));
        assert_eq!(script.count(), 1);
    });
}

// P7.3
#[test]
fn a_refresh_that_fails_keeps_the_keys() {
    let many = json!({"keys": vec![ed().jwk(); 65]}).to_string();
    run(move |passport, script, sim| async move {
        script.stand(&[ed()]);
        let token = ed().sign(&claims());
        assert!(is_alice(&passport, &token).await);
        *script.standing.lock() = None;
        for failure in [
            Err(FetchError::Timeout(Duration::from_secs(5))),
            Err(FetchError::TooLong(262_144)),
            Ok(answer(StatusCode::INTERNAL_SERVER_ERROR, "")),
            Ok(answer(StatusCode::FOUND, "")),
            Ok(answer(StatusCode::NO_CONTENT, "")),
            Ok(answer(StatusCode::OK, "")),
            Ok(answer(StatusCode::OK, "<html>")),
            Ok(answer(StatusCode::OK, "{}")),
            Ok(answer(StatusCode::OK, "[]")),
            Ok(answer(StatusCode::OK, r#"{"keys": {}}"#)),
            Ok(answer(StatusCode::OK, r#"{"keys": [], "keys": []}"#)),
            Ok(answer(StatusCode::OK, &many)),
        ] {
            seconds(&sim, 60).await;
            let unknown = sim.domain().spawn({
                let passport = passport.clone();
                async move { is_alice(&passport, &other_ed().sign(&claims())).await }
            });
            settle(&sim).await;
            script.answer(failure);
            assert_eq!(unknown.await, Ok(false));
            assert!(is_alice(&passport, &token).await);
        }
    });
}

// P7.3
#[test]
fn a_fetch_that_never_ends_is_given_up() {
    run(|passport, script, sim| async move {
        let started = sim.elapsed();
        assert!(!is_alice(&passport, &ed().sign(&claims())).await);
        assert!(sim.elapsed() - started <= Duration::from_secs(10));
        assert_eq!(script.count(), 1);
    });
}

/// Until there are keys, nobody of the issuer can come in: it is tried again sooner.
#[test]
fn the_first_fetch_is_tried_again_sooner() {
    run(|passport, script, sim| async move {
        let token = ed().sign(&claims());
        let first = sim.domain().spawn({
            let (passport, token) = (passport.clone(), token.clone());
            async move { is_alice(&passport, &token).await }
        });
        settle(&sim).await;
        script.answer(Ok(answer(StatusCode::BAD_GATEWAY, "")));
        assert_eq!(first.await, Ok(false));
        script.stand(&[ed()]);
        assert!(!is_alice(&passport, &token).await);
        assert_eq!(script.count(), 1);
        seconds(&sim, 5).await;
        assert!(is_alice(&passport, &token).await);
        assert_eq!(script.count(), 2);
        // And from then on once a minute.
        seconds(&sim, 30).await;
        assert!(!is_alice(&passport, &ec().sign(&claims())).await);
        assert_eq!(script.count(), 2);
    });
}

// P7.3
#[test]
fn a_key_that_is_taken_back_vouches_for_nobody_any_more() {
    run(|passport, script, sim| async move {
        script.stand(&[ed(), ec()]);
        let token = ed().sign(&claims());
        assert!(is_alice(&passport, &token).await);
        script.stand(&[ec()]);
        // Nobody asks for an unknown key, and still the keys do not become old.
        seconds(&sim, 599).await;
        assert!(is_alice(&passport, &token).await);
        assert_eq!(script.count(), 1);
        seconds(&sim, 1).await;
        // Whoever comes first does not wait.
        let headers = bearer(&token);
        assert!(
            passport
                .admit("/closed", &headers, false)
                .now()
                .expect("ready")
                .is_ok()
        );
        settle(&sim).await;
        assert_eq!(script.count(), 2);
        assert!(!is_alice(&passport, &token).await);
        assert!(is_alice(&passport, &ec().sign(&claims())).await);
    });
}

// P7.3
#[test]
fn old_keys_are_refreshed_once_and_again_after_a_minute_when_that_fails() {
    run(|passport, script, sim| async move {
        script.stand(&[ed()]);
        let token = ed().sign(&claims());
        assert!(is_alice(&passport, &token).await);
        *script.standing.lock() = None;
        seconds(&sim, 600).await;
        for _ in 0..10 {
            assert!(is_alice(&passport, &token).await);
        }
        settle(&sim).await;
        assert_eq!(script.count(), 2);
        script.answer(Ok(answer(StatusCode::BAD_GATEWAY, "")));
        seconds(&sim, 58).await;
        assert!(is_alice(&passport, &token).await);
        assert_eq!(script.count(), 2);
        seconds(&sim, 2).await;
        script.stand(&[ed()]);
        assert!(is_alice(&passport, &token).await);
        settle(&sim).await;
        assert_eq!(script.count(), 3);
    });
}

// P7.3
#[test]
fn keys_that_are_of_no_use_are_left_out() {
    run(|passport, script, sim| async move {
        let keys = json!({"keys": [
            7,
            {"kty": "oct", "kid": "ed", "k": "c2VjcmV0"},
            {"kty": "EC", "crv": "P-384", "kid": "p384", "x": "AA", "y": "AA"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "short", "x": "AAAA"},
            with(&rsa().jwk(), "use", json!("enc")),
            small_rsa().jwk(),
            // Of these two, nobody knows which one is meant.
            ec().jwk(),
            other_ec().with_kid("ec").jwk(),
            with(&ed().jwk(), "x5c", json!(["MIIB"])),
        ], "more": true});
        *script.standing.lock() = Some(keys);
        assert!(is_alice(&passport, &ed().sign(&claims())).await);
        seconds(&sim, 60).await;
        for key in [
            rsa(),
            small_rsa(),
            ec(),
            other_ec().with_kid("ec"),
            ed().with_kid("short"),
        ] {
            assert!(
                !is_alice(&passport, &key.sign(&claims())).await,
                "{}",
                key.kid
            );
        }
        // The one that can be used is the only one.
        let nameless = ed().sign_as(&without(&ed().header(), "kid"), &claims());
        assert!(is_alice(&passport, &nameless).await);
    });
}

/// A query can hold a secret.
#[test]
fn a_passport_does_not_show_its_urls() {
    run(|passport, _, _| async move {
        let shown = format!("{passport:?}");
        assert!(
            !shown.contains("tenant") && shown.contains("issuer.example"),
            "{shown}"
        );
    });
}

/// A refresh that has nowhere to run ends, and with it the wait for it.
#[test]
fn without_a_runtime_nothing_is_fetched_and_nobody_waits() {
    let script = Script::default();
    let fetcher: Arc<dyn Fetcher> = Arc::new(script.clone());
    let json = document(provider(json!({"url": URL}))).to_string();
    let domain = pinned_domain::Domain::real();
    let passport = Passport::parse(&json, |_| None, &domain, &fetcher).expect("a passport");
    let token = ed().sign(&with(&claims(), "exp", json!(1e300)));
    let headers = bearer(&token);
    let answer = passport.admit("/threads", &headers, false).now_or_never();
    let admitted = answer.expect("no wait").expect("anyone is admitted");
    assert!(admitted.account.is_none());
    assert_eq!(script.count(), 0);
}
