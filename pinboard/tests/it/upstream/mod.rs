//! Tests of `upstream`, against a worker's end that is scripted byte for byte.

mod allocations;
mod connect;
mod fetcher;
mod framing;
mod interim;
mod malformed;
mod peers;
mod pool;
mod pressure;
mod rig;
mod splits;
mod tls;
mod trailers;
mod upgrade;
mod upload;
