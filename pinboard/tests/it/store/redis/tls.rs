//! TLS, as the system trusts it.

use std::path::Path;

use pinboard::store::{RegistryStore, StoreError};
use pinned_testing::RedisServer;

use super::support::{STEADY, key, open, place, ready, worker};
use crate::certificates;

/// Set in a process of its own, which trusts another set of certificates: where the server is.
const AT: &str = "PINBOARD_TEST_REDISS_PORT";

fn write(folder: &Path, file: &str, text: &str) -> String {
    let path = folder.join(file);
    std::fs::write(&path, text).expect("the folder takes files");
    path.display().to_string()
}

#[tokio::test]
async fn a_server_that_the_system_trusts_is_spoken_to_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let pems = certificates::for_localhost();
    let authority = write(folder.path(), "authority.pem", &pems.authority);
    let certificate = write(folder.path(), "certificate.pem", &pems.certificate);
    let key = write(folder.path(), "key.pem", &pems.key);

    let server = RedisServer::start().await;
    let port = free_port().await.to_string();
    server
        .cli(&[
            "CONFIG",
            "SET",
            "tls-ca-cert-file",
            &authority,
            "tls-cert-file",
            &certificate,
            "tls-key-file",
            &key,
            "tls-auth-clients",
            "no",
            "tls-port",
            &port,
        ])
        .await;

    let name = "store::redis::tls::in_a_process_of_its_own";
    certificates::run_trusting(name, &authority, (AT, &port)).await;
}

async fn free_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    listener.local_addr().expect("it has one").port()
}

/// The other half of the test above, which starts it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let Ok(port) = std::env::var(AT) else {
        return;
    };
    let store = ready(&format!("rediss://localhost:{port}"), STEADY).await;
    let session = worker(&store).await;
    place(&store, &key("a"), &session).await;

    // The certificate is for a name, not for the address; and a server without TLS does not do.
    let store = open(&format!("rediss://127.0.0.1:{port}"), STEADY);
    let refused = store.prepare().await.expect_err("it is for another name");
    let StoreError::Unavailable(why) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.to_string().contains("certificate"), "{why}");
}
