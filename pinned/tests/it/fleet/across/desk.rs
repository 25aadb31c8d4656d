//! An instance that says what it was asked.

use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::response::IntoResponse;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use pinned::{BoxError, Context, Json, pinned_api, route};
use serde_json::{Value, json};

use super::Gates;

#[derive(Default)]
pub(super) struct Desk;

fn said(
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
    body: &str,
) -> impl IntoResponse + use<> {
    let mut names: Vec<&str> = headers
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !matches!(*name, "content-type" | "content-length"))
        .collect();
    names.sort_unstable();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said: Value = json!({
        "verb": method.as_str(),
        "query": query,
        "headers": names,
        "mine": text("x-mine"),
        "type": text("content-type"),
        "body": body,
    });
    let more = [
        ("x-desk", "here"),
        ("pinboard-epoch", "9"),
        ("pinboard_x", "1"),
    ];
    (StatusCode::ACCEPTED, more, Json(said))
}

macro_rules! verbs {
    ($($name:ident)*) => {
        #[pinned_api]
        impl Desk {
            $(
                #[route::$name("/all")]
                async fn $name(
                    &self,
                    method: Method,
                    RawQuery(query): RawQuery,
                    headers: HeaderMap,
                    body: String,
                ) -> impl IntoResponse + use<> {
                    said(&method, query.as_deref(), &headers, &body)
                }
            )*

            #[route::get("/text")]
            async fn text(&self) -> &'static str {
                "text"
            }

            #[route::get("/binary")]
            async fn binary(&self) -> Bytes {
                Bytes::from_static(&[0xff, 0xfe])
            }

            /// Two chunks, and the gate `more` between them.
            #[route::get("/stream")]
            async fn stream(&self, ctx: Context) -> Body {
                let gates = Gates::clone(&ctx.state::<Gates>().expect("shared"));
                Body::from_stream(stream::iter(["one", "two"]).then(move |chunk| {
                    let gates = gates.clone();
                    async move {
                        if chunk == "two" {
                            gates.named("more").pass().await;
                        }
                        Ok::<_, BoxError>(chunk)
                    }
                }))
            }

            #[route::get("/waits")]
            async fn waits(&self, ctx: Context) {
                let gates = ctx.state::<Gates>().expect("shared");
                gates.named("waits").pass().await;
            }
        }
    };
}

verbs!(get post put patch delete);
