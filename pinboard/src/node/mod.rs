//! One node, put together and run: in its own process, or inside another program.
//!
//! ```no_run
//! use pinboard::Pinboard;
//! use tokio::net::TcpListener;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let pinboard = Pinboard::builder().memory().token("letmein").serve(listener).await?;
//! println!("http://{}", pinboard.address());
//! pinboard.shutdown().await;
//! # Ok(()) }
//! ```

mod background;
mod builder;
mod error;
mod figures;
mod parts;
mod registry_store;
mod running;

pub use builder::PinboardBuilder;
pub use error::StartError;
pub use running::{Pinboard, Serving};
