//! The arguments of `#[route::*]`: `("/path", auth = none | Self::other, durable)`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, LitStr, Token};

/// The arguments of a route attribute.
pub(crate) struct RouteArguments {
    pub(crate) path: LitStr,
    pub(crate) auth: Option<AuthArgument>,
    /// The word `durable`.
    pub(crate) durable: Option<Ident>,
}

/// The value of `auth = ..`.
pub(crate) enum AuthArgument {
    /// `none`.
    None,
    /// `Self::name`.
    Function(Ident),
}

impl Parse for RouteArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(LitStr) {
            return Err(input.error(
                "a route needs its path first, as a string literal such as `\"/increment\"`",
            ));
        }
        let path = input.parse()?;
        let mut auth = None;
        let mut durable = None;
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let name = input.call(Ident::parse_any)?;
            let twice = if name == "auth" {
                input.parse::<Token![=]>()?;
                auth.replace(AuthArgument::parse(input)?).is_some()
            } else if name == "durable" {
                if input.peek(Token![=]) {
                    let message = "`durable` stands alone: write `durable`, or leave it out";
                    return Err(input.error(message));
                }
                durable.replace(name.clone()).is_some()
            } else {
                let message =
                    format!("unknown route option `{name}`; there are `auth` and `durable`");
                return Err(syn::Error::new(name.span(), message));
            };
            if twice {
                let message = format!("`{name}` is given twice");
                return Err(syn::Error::new(name.span(), message));
            }
        }
        Ok(Self {
            path,
            auth,
            durable,
        })
    }
}

impl Parse for AuthArgument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let expression: Expr = input.parse().map_err(|error| {
            syn::Error::new(error.span(), "`auth` takes `none` or `Self::<function>`")
        })?;
        Self::of(&expression)
            .map_err(|message| syn::Error::new_spanned(expression.to_token_stream(), message))
    }
}

impl AuthArgument {
    fn of(expression: &Expr) -> Result<Self, String> {
        let written = shown(expression.to_token_stream());
        let unknown = || {
            Err(format!(
                "`auth` takes `none` (anyone may call) or `Self::<function>` (a function of this block), \
                 not `{written}`"
            ))
        };
        let Expr::Path(path) = expression else {
            return unknown();
        };
        let segments: Vec<&Ident> = path.path.segments.iter().map(|s| &s.ident).collect();
        match segments.as_slice() {
            [word] if *word == "none" => Ok(Self::None),
            [word] if *word == "None" => Err(
                "write `auth = none`: it is a word of the attribute, not an `Option`".to_owned(),
            ),
            [function] => Err(format!(
                "an authorizer is a function of this block: write `auth = Self::{function}`, \
                 or `auth = none` for a public route"
            )),
            [this, function] if *this == "Self" => Ok(Self::Function((*function).clone())),
            _ => unknown(),
        }
    }
}

/// The tokens as one would write them, near enough for a message.
fn shown(tokens: TokenStream) -> String {
    tokens.to_string().replace(" :: ", "::").replace(" (", "(")
}
