//! Workers that advertise `https`.

use std::net::SocketAddr;
use std::sync::Arc;

use pinboard::upstream::{Backend, Connector, ExchangeErrorKind, Framing, TcpDial};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::rig::{Peer, broken, full, get, none, options, pipes, request, text};

/// What a worker presents, and who trusts it.
struct Certified {
    acceptor: TlsAcceptor,
    trusting: Connector,
}

fn certified(names: &[&str]) -> Certified {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(names).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a key of the certificate");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Certified {
        acceptor: TlsAcceptor::from(Arc::new(server)),
        trusting: Connector::new(TcpDial).with_tls(Arc::new(client)),
    }
}

struct Worker {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
}

impl Worker {
    async fn new(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self {
            address: listener.local_addr().expect("an address"),
            listener,
            acceptor,
        }
    }

    async fn accept(&self) -> Peer<TlsStream<TcpStream>> {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        Peer::new(self.acceptor.accept(stream).await.expect("a handshake"))
    }
}

#[tokio::test]
async fn a_worker_behind_tls_is_spoken_to_over_connections_that_are_used_again() {
    for (name, url) in [
        ("worker.example", "https://worker.example/"),
        ("127.0.0.1", "https://127.0.0.1/"),
    ] {
        let Certified { acceptor, trusting } = certified(&[name]);
        let worker = Worker::new(acceptor).await;
        let backend = Backend::with_connector(options(url, vec![worker.address]), trusting);
        let client = async {
            for _ in 0..3 {
                let head = request("POST", "/", Framing::Chunked);
                let reply = backend.send(0, head, full("hello")).await.expect("a reply");
                assert_eq!(text(reply.body).await, "ok");
                assert_eq!(backend.idle(), 1);
            }
        };
        tokio::join!(client, async {
            let mut peer = worker.accept().await;
            for _ in 0..3 {
                peer.head().await;
                peer.expect("5\r\nhello\r\n0\r\n\r\n").await;
                peer.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
                    .await;
                peer.write("ok").await;
            }
        });
    }
}

#[tokio::test]
async fn a_worker_that_is_not_trusted_gets_no_request() {
    let Certified { acceptor, .. } = certified(&["worker.example"]);
    let worker = Worker::new(acceptor).await;
    let others = certified(&["worker.example"]).trusting;
    let backend = Backend::with_connector(
        options("https://worker.example/", vec![worker.address]),
        others,
    );
    let (reply, accepted) = tokio::join!(backend.send(0, get("/"), none()), async {
        let (stream, _) = worker.listener.accept().await.expect("a connection");
        worker.acceptor.accept(stream).await
    });
    let error = reply.expect_err("an unknown certificate");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached && accepted.is_err());
}

#[tokio::test]
async fn a_worker_with_another_name_in_its_certificate_gets_no_request() {
    let Certified { acceptor, trusting } = certified(&["other.example"]);
    let worker = Worker::new(acceptor).await;
    let backend = Backend::with_connector(
        options("https://worker.example/", vec![worker.address]),
        trusting,
    );
    let (reply, accepted) = tokio::join!(backend.send(0, get("/"), none()), async {
        let (stream, _) = worker.listener.accept().await.expect("a connection");
        worker.acceptor.accept(stream).await
    });
    let error = reply.expect_err("another name");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached && accepted.is_err());
}

#[tokio::test]
async fn a_worker_that_does_not_speak_tls_is_unreachable() {
    let Certified { acceptor, trusting } = certified(&["worker.example"]);
    let worker = Worker::new(acceptor).await;
    let backend = Backend::with_connector(
        options("https://worker.example/", vec![worker.address]),
        trusting,
    );
    let (reply, ()) = tokio::join!(backend.send(0, get("/"), none()), async {
        let mut peer = Peer::new(worker.listener.accept().await.expect("a connection").0);
        peer.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            .await;
    });
    let error = reply.expect_err("no TLS");
    assert_eq!(error.kind, ExchangeErrorKind::Unreachable);
    assert!(!error.may_have_reached);
}

// Whoever is between the two could cut a body short otherwise.
#[tokio::test]
async fn a_body_until_the_end_needs_the_end_that_tls_has() {
    for is_clean in [true, false] {
        let Certified { acceptor, trusting } = certified(&["worker.example"]);
        let worker = Worker::new(acceptor).await;
        let backend = Backend::with_connector(
            options("https://worker.example/", vec![worker.address]),
            trusting,
        );
        let (reply, ()) = tokio::join!(backend.send(0, get("/"), none()), async {
            let mut peer = worker.accept().await;
            peer.head().await;
            peer.write("HTTP/1.1 200 OK\r\n\r\nhello").await;
            if is_clean {
                tokio::io::AsyncWriteExt::shutdown(&mut peer.stream)
                    .await
                    .expect("open");
            }
        });
        let body = reply.expect("a reply").body;
        if is_clean {
            assert_eq!(text(body).await, "hello");
        } else {
            let (before, error) = broken(body).await;
            assert_eq!(
                (&before[..], error.kind()),
                (&b"hello"[..], std::io::ErrorKind::UnexpectedEof)
            );
        }
    }
}

#[tokio::test]
async fn tls_is_spoken_over_pipes_too() {
    let Certified { acceptor, .. } = certified(&["worker.example"]);
    let (connector, mut accepted, _) = pipes();
    // Not trusted either, which is enough to see that both ends speak it.
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
    let address = SocketAddr::from(([10, 0, 0, 1], 443));
    let backend = Backend::with_connector(
        options("https://worker.example/", vec![address]),
        connector.with_tls(Arc::new(config)),
    );
    let (reply, accepted) = tokio::join!(backend.send(0, get("/"), none()), async {
        acceptor
            .accept(accepted.recv().await.expect("a connection"))
            .await
    });
    let error = reply.expect_err("an unknown certificate");
    assert!(
        error.source.to_string().contains("certificate"),
        "{}",
        error.source
    );
    assert!(accepted.is_err());
}
