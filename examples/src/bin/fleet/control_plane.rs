//! The control plane: one node that keeps the fleet in memory.

use std::env;
use std::error::Error;

use pinboard::Pinboard;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::family::{HOST, TOKEN};

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let port: u16 = env::var("PORT")?.parse()?;
    let listener = TcpListener::bind((HOST, port)).await?;
    let pinboard = Pinboard::builder()
        .memory()
        .token(TOKEN)
        .serve(listener)
        .await?;
    terminated.recv().await;
    pinboard.shutdown().await;
    Ok(())
}
