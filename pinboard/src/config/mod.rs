//! What a node is told by its environment (P1.3, P1.4).
//!
//! [`Config::load`] reads and checks every variable before anything starts. A value that cannot be used is a
//! [`ConfigError`]: one line that names the variable and what it takes, and never shows a value that may be secret.

mod dev;
mod environment;
mod error;
mod limits;
mod load;
mod postgres;
mod variables;

pub use error::ConfigError;
pub use limits::raise_open_files;
pub use load::{Config, DevKey, StoreConfig, World};
pub use postgres::{MalformedDsn, PostgresTarget};
pub use variables::{VARIABLES, Variable};
