//! No document makes the reader panic: it is a passport, or an error of one line that shows no value.
//!
//! An input is tried as a whole document, as a provider, as the claims of a key, and as the key set of an issuer, so that each of
//! these is reached without the ones around it.

#![no_main]

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use pinboard::passport::Passport;
use pinboard::upstream::{Fetch, FetchError, Fetched, Fetcher};
use pinned_domain::Domain;

struct Nothing;

impl Fetcher for Nothing {
    fn fetch(&self, _: Fetch) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        unreachable!("reading a passport fetches nothing")
    }
}

fuzz_target!(|input: &str| {
    let fetcher: Arc<dyn Fetcher> = Arc::new(Nothing);
    let domain = Domain::real();
    let issuer = r#"{"providers":[{"type":"jwt","id":"b","issuer":"i","audience":"a","jwks":"#;
    let key = r#"{"providers":[{"type":"staticToken","id":"a","keys":[{"name":"a","token":"s3cret-t0ken","claims":{"pinboard":"#;
    let documents = [
        input.to_owned(),
        format!(r#"{{"providers":[{input}]}}"#),
        format!("{issuer}{input}}}]}}"),
        format!("{key}{input}}}}}]}}]}}"),
    ];
    for document in documents {
        let env = |name: &str| (name.len() < 8).then(|| format!("s3cret-{name}"));
        match Passport::parse(&document, env, &domain, &fetcher) {
            Ok(passport) => {
                let mut headers = HeaderMap::new();
                let token = HeaderValue::from_static("Bearer s3cret-t0ken");
                headers.insert(header::AUTHORIZATION, token);
                let known = passport
                    .authenticate(&headers)
                    .now_or_never()
                    .expect("no issuer is asked for such a token");
                let shown = format!("{passport:?}");
                // The account is shown, and a fuzzer may call it what it likes.
                assert!(known.is_none() || input.contains("s3cret") || !shown.contains("s3cret"));
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("PINBOARD_PASSPORT is invalid: "));
                assert!(!error.contains(|char: char| char.is_control()), "{error:?}");
                assert!(
                    input.contains("s3cret") || !error.contains("s3cret"),
                    "{error:?}"
                );
            }
        }
    }
});
