//! The token with which pinboard vouches for a request, and for who sent it.
//!
//! It is a compact JWS of one fixed form: HMAC-SHA256 under the secret that a worker shares with pinboard, for the
//! session that the worker holds, good for [`LIFETIME`]. There is no choice of algorithm and no key id, so there is
//! nothing in a token to be fooled by before its signature is checked.
//!
//! ```
//! use std::time::SystemTime;
//! use pinned_wire::attestation::{Caller, Claims, mint, verify};
//!
//! let (secret, session, now) = ("0f1e2d", "session-1", SystemTime::now());
//! let token = mint(secret, &Claims::new(session, now).with_caller("/rooms/lobby", 1));
//!
//! let claims = verify(secret, &[session], now, &token).expect("our own token");
//! assert_eq!(Caller::from(claims), Caller::Instance { ns: "/rooms".into(), id: "lobby".into(), depth: 1 });
//! assert_eq!(verify("another secret", &[session], now, &token), None);
//! ```

mod caller;
mod claims;
mod token;

pub use caller::Caller;
pub use claims::{Account, Claims, LIFETIME};
pub use token::{LEEWAY, TokenKey, mint, same_secret, verify};
