//! Private Redis servers for tests.

mod cluster;
mod options;
mod program;
mod server;

pub use cluster::RedisCluster;
pub use options::{RedisOptions, RedisPersistence};
pub use server::RedisServer;
