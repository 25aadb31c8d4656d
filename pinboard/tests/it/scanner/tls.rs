//! TLS, as the system trusts it.

use std::time::Duration;

use pinboard::config::PostgresTarget;
use pinboard::scanner::{MarkedRows, PostgresRows};
use pinned_domain::Domain;
use pinned_testing::PostgresServer;

use crate::certificates;

/// Set in a process of its own, which trusts another set of certificates: where the server is.
const AT: &str = "PINBOARD_TEST_POSTGRES_TLS_AT";

#[tokio::test]
async fn a_database_that_the_system_trusts_is_read_over_tls() {
    // P8.1
    let folder = tempfile::tempdir().expect("a folder");
    let pems = certificates::for_localhost();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, &pems.authority).expect("the folder takes files");
    let authority = authority.display().to_string();

    let server = PostgresServer::start().await;
    let dsn = server.create_database().await;
    let client = super::postgres::client(&dsn).await;
    // The server reads no key that others may read as well, or that is not its own: it writes both files itself.
    for (file, pem) in [("test.crt", &pems.certificate), ("test.key", &pems.key)] {
        let lines = pem.lines().map(|line| format!("('{line}')"));
        let lines = lines.collect::<Vec<_>>().join(", ");
        let write = format!("COPY (VALUES {lines}) TO PROGRAM 'umask 077; cat > \"$PWD/{file}\"'");
        client.batch_execute(&write).await.expect("written");
    }
    for setting in [
        "ssl_cert_file = 'test.crt'",
        "ssl_key_file = 'test.key'",
        "ssl = on",
    ] {
        let set = format!("ALTER SYSTEM SET {setting}");
        client.batch_execute(&set).await.expect("set");
    }
    client
        .batch_execute("SELECT pg_reload_conf()")
        .await
        .expect("read again");

    let name = "scanner::tls::in_a_process_of_its_own";
    let at = dsn.replace("127.0.0.1", "localhost");
    certificates::run_trusting(name, &authority, (AT, &at)).await;
}

/// The other half of the test above, which starts it.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let Ok(at) = std::env::var(AT) else {
        return;
    };
    let rows = |dsn: String| {
        let target = PostgresTarget::parse(&dsn).expect("a DSN");
        PostgresRows::new(target, Domain::real())
    };
    let trusted = rows(format!("{at}?sslmode=verify-full"));
    // The settings are read again soon after they were told to be.
    let domain = Domain::real();
    let deadline = domain.monotonic() + Duration::from_secs(30);
    while let Err(error) = trusted.page(None).await {
        assert!(domain.monotonic() < deadline, "{error:?}");
        domain.sleep(Duration::from_millis(50)).await;
    }
    // The certificate is for a name, not for the address.
    let other = rows(format!("{at}?sslmode=require").replace("localhost", "127.0.0.1"));
    let Err(refused) = other.page(None).await else {
        panic!("it is for another name");
    };
    let mut said = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&refused);
    while let Some(error) = cause {
        said += &format!("{error}: ");
        cause = error.source();
    }
    assert!(said.contains("certificate"), "{said}");
}
