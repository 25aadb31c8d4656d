//! TLS, as the system trusts it.

use std::path::Path;
use std::process::Command;

use pinboard::store::{RegistryStore, StoreError};
use pinned_testing::RedisServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::support::{STEADY, key, open, place, ready, worker};

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
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|params| params.signed_by(&key, &authority))
        .expect("a certificate");
    let authority = write(folder.path(), "authority.pem", &authority.pem());
    let certificate = write(folder.path(), "certificate.pem", &certificate.pem());
    let key = write(folder.path(), "key.pem", &key.serialize_pem());

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

    // Who is trusted is read from the environment, and that of this process is everybody's.
    let own = std::env::current_exe().expect("it runs");
    let mut child = Command::new(own);
    child
        .args([
            "--exact",
            "store::redis::tls::in_a_process_of_its_own",
            "--nocapture",
        ])
        .env(AT, &port)
        .env("SSL_CERT_FILE", &authority)
        .env_remove("SSL_CERT_DIR");
    let mut child = child.spawn().expect("it starts");
    let status = tokio::task::spawn_blocking(move || child.wait());
    let status = status.await.expect("it is waited for").expect("it ends");
    assert!(status.success(), "{status}");
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
