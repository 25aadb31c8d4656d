use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use pinned_testing::{TestApp, TestClient, TestRequest};
use serde_json::{Value, json};

use crate::document::{Document, MAX_BYTES};
use crate::worker;

const ADA: &str = "Bearer ada-secret";
const BOB: &str = "Bearer bob-secret";
const NOTES: &str = "/documents/ada.notes";

async fn app() -> TestApp {
    TestApp::start(worker())
        .await
        .expect("the worker is put together right")
}

fn upload(client: &TestClient, bearer: &str, body: impl Into<Body>) -> TestRequest {
    client.put(NOTES).header("authorization", bearer).body(body)
}

async fn text(client: &TestClient) -> String {
    client.get(NOTES).send().await.text().await
}

async fn about(client: &TestClient) -> Value {
    client
        .get(format!("{NOTES}/about"))
        .send()
        .await
        .json()
        .await
}

async fn audit(client: &TestClient) -> Vec<String> {
    client
        .get("/audit/ada")
        .header("authorization", ADA)
        .send()
        .await
        .json()
        .await
}

/// Returns once nothing runs any more: a paused clock moves only then.
async fn settle(app: &TestApp) {
    app.worker().domain().sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_owner_writes_and_everyone_reads() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    assert_eq!(client.get(NOTES).send().await.status(), 404);
    assert_eq!(client.put(NOTES).body("mine").send().await.status(), 401);
    assert_eq!(
        upload(&client, "Bearer guessed", "mine")
            .send()
            .await
            .status(),
        401
    );
    let denied = upload(&client, BOB, "mine").send().await;
    assert_eq!(denied.status(), 403);
    assert_eq!(
        denied.json::<Value>().await,
        json!({"message": "only ada may do this"})
    );

    assert_eq!(upload(&client, ADA, "hers").send().await.status(), 204);
    assert_eq!(text(&client).await, "hers");
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn whoever_has_signed_in_comments_under_their_own_name() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let comment = || client.post(format!("{NOTES}/comments")).body("well said");
    assert_eq!(comment().send().await.status(), 401);
    assert_eq!(
        comment().header("authorization", BOB).send().await.status(),
        204
    );
    assert_eq!(
        about(&client).await["comments"],
        json!([{"by": "bob", "text": "well said"}])
    );
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_fails_changes_nothing() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    upload(&client, ADA, "the old text").send().await;

    let broken = stream::iter([Ok("half"), Err(io::Error::other("gone"))]);
    assert_eq!(
        upload(&client, ADA, Body::from_stream(broken))
            .send()
            .await
            .status(),
        400
    );
    let chunk = Bytes::from(vec![b'x'; 1024 * 1024]);
    let endless = stream::repeat_with(move || Ok::<_, io::Error>(chunk.clone()));
    assert_eq!(
        upload(&client, ADA, Body::from_stream(endless))
            .send()
            .await
            .status(),
        413
    );
    assert_eq!(text(&client).await, "the old text");

    let largest = vec![b'x'; MAX_BYTES];
    assert_eq!(upload(&client, ADA, largest).send().await.status(), 204);
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn a_download_goes_on_with_its_text_while_a_new_one_comes_in() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let chunks = stream::iter(["one ", "two ", "three"].map(Ok::<_, io::Error>));
    upload(&client, ADA, Body::from_stream(chunks)).send().await;

    let mut download = client.get(NOTES).send().await.body();
    let soon = Duration::from_secs(5);
    assert_eq!(
        download.next_chunk(soon).await.as_deref(),
        Some(&b"one "[..])
    );
    upload(&client, ADA, "new").send().await;
    assert_eq!(download.drain(soon).await, "two three");
    assert_eq!(text(&client).await, "new");
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn words_are_counted_in_the_background_and_recorded() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let chunks = stream::iter([" on", "e two\n", "three "].map(Ok::<_, io::Error>));
    upload(&client, ADA, Body::from_stream(chunks)).send().await;
    settle(&app).await;
    let about = about(&client).await;
    assert_eq!((&about["version"], &about["words"]), (&json!(1), &json!(3)));
    assert_eq!(audit(&client).await, ["ada.notes: version 1 has 3 words"]);
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn counting_yields_to_an_eviction() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let documents = app.host::<Document>();
    let asked = documents.clone();
    let chunk = stream::once(async move {
        asked.wind_down("ada.notes", Some(Duration::from_secs(60)));
        Ok::<_, io::Error>("one two")
    });
    assert_eq!(
        upload(&client, ADA, Body::from_stream(chunk))
            .send()
            .await
            .status(),
        204
    );
    settle(&app).await;
    assert!(documents.is_empty(), "closed once the count had yielded");
    assert!(audit(&client).await.is_empty());
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn the_record_is_written_by_documents_and_read_by_its_subject_alone() -> pinned::Result<()> {
    let app = app().await;
    let client = app.client();
    let forged = client
        .post("/audit/ada")
        .header("authorization", ADA)
        .body("forged")
        .send()
        .await;
    assert_eq!(forged.status(), 403);
    assert_eq!(client.get("/audit/ada").send().await.status(), 401);
    let nosy = client
        .get("/audit/ada")
        .header("authorization", BOB)
        .send()
        .await;
    assert_eq!(nosy.status(), 403);
    assert!(audit(&client).await.is_empty());
    app.shutdown().await
}

#[tokio::test(start_paused = true)]
async fn an_id_without_an_owner_is_no_document() -> pinned::Result<()> {
    let app = app().await;
    let answer = app.client().get("/documents/notes").send().await;
    assert_eq!(answer.status(), 404);
    let detail = json!({"detail": "a document's id is <owner>.<name>"});
    assert_eq!(answer.json::<Value>().await, detail);
    assert!(app.host::<Document>().is_empty());
    app.shutdown().await
}
