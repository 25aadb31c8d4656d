//! What can go wrong, and what to do about it.

use std::io;

use http::StatusCode;
use pinned_domain::ErrorChain;
use url::Url;

use crate::upstream::FetchError;

/// A command came to nothing. Each says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// Nobody answers there.
    #[error("cannot reach {url}: {}; is a pinboard running there? --url or PINBOARD_URL names another", ErrorChain(.source))]
    Unreachable {
        /// The node.
        url: Url,
        /// Why.
        source: FetchError,
    },
    /// 401.
    #[error("{}", unauthorized(*.with_token))]
    Unauthorized {
        /// Whether a token was sent.
        with_token: bool,
    },
    /// 403.
    #[error(
        "{message}: the token's key lacks the scope pinboard:operator, or its claims do not cover this{}", unknown_client(*.order)
    )]
    Forbidden {
        /// What the server said.
        message: String,
        /// Whether it was about an order to one worker, which may also not be known.
        order: bool,
    },
    /// Another refusal.
    #[error("{message}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// What the server said.
        message: String,
    },
    /// Something else answers there.
    #[error(
        "{url} does not answer as a pinboard does: {what}; --url or PINBOARD_URL names another"
    )]
    NotPinboard {
        /// The node.
        url: Url,
        /// What it did instead.
        what: String,
    },
    /// The token cannot be sent.
    #[error(
        "the token has characters that no token has; look at --token or PINBOARD_OPERATOR_TOKEN"
    )]
    MalformedToken,
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// Whether nobody reads what is printed any more: that is their choice, and no failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether asking again a little later may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => status.is_server_error(),
            _ => false,
        }
    }
}

fn unauthorized(with_token: bool) -> &'static str {
    if with_token {
        "unauthorized: the fleet does not know the token in --token or PINBOARD_OPERATOR_TOKEN"
    } else {
        "unauthorized: set --token or PINBOARD_OPERATOR_TOKEN to the token of a key with the scope pinboard:operator"
    }
}

fn unknown_client(order: bool) -> &'static str {
    if order {
        ", or no worker with this client id has ever registered (`pinboard workers` lists those that live)"
    } else {
        ""
    }
}
