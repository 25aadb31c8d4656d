//! The provider `jwt` (P7.3).
//!
//! | file | what it does |
//! |---|---|
//! | `compact` | takes a token apart, and checks what can be checked without a key |
//! | `key_set` | the keys of an issuer, each with the one algorithm it is for |
//! | `remote` | a key set behind a URL: fetched, kept, refreshed |
//! | `provider` | one issuer: which tokens it vouches for, and what they say |
//! | `providers` | all of them, and the tokens that were found good |

mod compact;
mod key_set;
mod provider;
mod providers;
mod remote;

pub(super) use key_set::KeySet;
pub(super) use provider::{JwtProvider, JwtProviderOptions, Keys};
pub(super) use providers::{Found, JwtProviders};
pub(super) use remote::RemoteKeys;
