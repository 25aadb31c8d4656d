//! Threads that each serve clients of their own.

use std::net::TcpListener;

use pinboard::server::{Lanes, ServerOptions};

use crate::proxy::rig::{Peer, Plan, Rig, get, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_share_an_address_and_end_with_their_server() {
    let mut options = ServerOptions::default();
    (options.lanes, options.grace) = (3, std::time::Duration::ZERO);
    let plan = Plan {
        options,
        ..Plan::default()
    };
    let rig = Rig::planned(plan).await;
    let worker = rig.worker("a").await;
    let lanes = Lanes::start(&rig.server, ([127, 0, 0, 1], 0).into()).expect("threads");
    let serving = async {
        loop {
            let (mut peer, _) = worker.asked().await;
            peer.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                .await;
        }
    };
    let asking = async {
        for _ in 0..50 {
            let stream = tokio::net::TcpStream::connect(lanes.address())
                .await
                .expect("listens");
            let mut client = Peer::new(stream);
            client.write(get("/rooms/alice")).await;
            assert_eq!(client.head().await.status(), 204);
        }
    };
    tokio::select! {
        () = asking => {}
        () = serving => {}
    }
    // Somebody else cannot take a part of its clients.
    assert!(Lanes::start(&rig.server, lanes.address()).is_err());
    assert!(TcpListener::bind(lanes.address()).is_err());
    soon("the end", rig.server.stop()).await;
    lanes.join();
}
