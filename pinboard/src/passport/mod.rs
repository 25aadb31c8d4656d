//! Who is asking, and what they may do (P7).
//!
//! | file | what it does |
//! |---|---|
//! | `document/` | reads `PINBOARD_PASSPORT` |
//! | `gate` | the [`Passport`]: whose a token is, and whether a request may reach a namespace |
//! | `credentials` | finds the tokens of a request |
//! | `static_token`, `jwt/` | the providers |
//! | `grants`, `backend_rule` | what `claims.pinboard` lets a principal do |
//! | `backend_host` | whether a worker may advertise a URL, and which addresses are dialled for it |

mod admission;
mod backend_host;
mod backend_rule;
mod credentials;
mod digest;
mod document;
mod due;
mod gate;
mod grants;
mod jwt;
mod principal;
mod rule;
mod special;
mod static_token;

pub use admission::{Admit, Admitted, Denied};
pub use backend_host::{
    BackendHostError, Resolve, allowed_addresses, check_addresses, parse_backend_url,
};
pub use backend_rule::{BackendHostRule, NotABackendHost};
pub use credentials::{BEARER_PROTOCOL, remaining_protocols};
pub use document::PassportError;
pub use gate::Passport;
pub use grants::Grants;
pub use principal::Principal;
pub use static_token::InvalidToken;

/// The scope of workers.
pub const WORKER_SCOPE: &str = "pinboard:worker";
/// The scope of operators.
pub const OPERATOR_SCOPE: &str = "pinboard:operator";
