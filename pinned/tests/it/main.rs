//! The hosting rules (`spec/hosting.md`), item by item, against real hosts on a paused clock.

mod activation;

mod admission;
mod app;
mod authorization;
mod close;
mod cluster;
mod configuration;
mod detached;
mod dispatch;
mod durable;
mod fences;
#[cfg(feature = "fleet")]
mod fleet;
mod hostile;
mod idle;
mod kept;
mod observable;
mod observe;
#[cfg(feature = "postgres")]
mod postgres;
mod rig;
mod routing;
mod scene;
mod sockets;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stored;
mod streams;
mod surface;
mod tasks;
mod trays;
mod turns;
mod wake;
mod wind_down;
mod worker;
