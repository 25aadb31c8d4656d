//! An authority of a test's own, and what it signs.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Each as PEM.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Certificates for the name `localhost`, and for no address.
pub(crate) fn for_localhost() -> Certificates {
    let mut authority = CertificateParams::new(Vec::<String>::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"))
        .expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])
        .and_then(|params| params.signed_by(&key, &authority))
        .expect("a certificate");
    Certificates {
        authority: authority.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

/// Runs the test `name` of this binary in a process that trusts `authority` (the path of a file), with the variable that tells
/// it so. Who is trusted is read from the environment, and that of this process is everybody's.
pub(crate) async fn run_trusting(name: &str, authority: &str, variable: (&str, &str)) {
    let own = std::env::current_exe().expect("it runs");
    let mut child = std::process::Command::new(own);
    child
        .args(["--exact", name, "--nocapture"])
        .env(variable.0, variable.1)
        .env("SSL_CERT_FILE", authority)
        .env_remove("SSL_CERT_DIR");
    let mut child = child.spawn().expect("it starts");
    let status = tokio::task::spawn_blocking(move || child.wait());
    let status = status.await.expect("it is waited for").expect("it ends");
    assert!(status.success(), "{status}");
}
