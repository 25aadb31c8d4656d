//! Who may sign in. A real program would ask its identity provider here.

use std::collections::HashMap;

use axum::http::header::AUTHORIZATION;
use pinned::{AuthRejected, Connection, Context, Denied};

/// Someone who has signed in.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
}

/// Everyone, by bearer token.
pub(crate) struct Users(HashMap<String, User>);

impl Users {
    pub(crate) fn new<const N: usize>(names_and_tokens: [(&str, &str); N]) -> Self {
        let users = names_and_tokens.map(|(name, token)| {
            let user = User {
                name: name.to_owned(),
            };
            (token.to_owned(), user)
        });
        Self(users.into())
    }
}

/// The user behind the bearer token of a request.
pub(crate) fn sign_in(ctx: &Context, conn: &Connection) -> Result<User, Denied> {
    let users = ctx
        .state::<Users>()
        .ok_or_else(|| Denied::fault("the worker has no `Users`"))?;
    let token = conn
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match token.and_then(|token| users.0.get(token)) {
        Some(user) => Ok(user.clone()),
        None => Err(AuthRejected::new("sign in with a bearer token").into()),
    }
}

/// The same, for what belongs to `owner` alone.
pub(crate) fn sign_in_as(owner: &str, ctx: &Context, conn: &Connection) -> Result<User, Denied> {
    let user = sign_in(ctx, conn)?;
    if user.name == owner {
        Ok(user)
    } else {
        Err(AuthRejected::new(format!("only {owner} may do this"))
            .forbidden()
            .into())
    }
}
