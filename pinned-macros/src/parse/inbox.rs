//! The arguments of `#[inbox]`: `(trait = Name, crate = path)`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, Ident, Path};

use super::options::{Setting, read_settings};
use crate::errors::Errors;

/// The arguments as written.
#[derive(Default)]
pub(crate) struct InboxArguments {
    pub(crate) name: Option<Ident>,
    pub(crate) krate: Option<Path>,
}

impl InboxArguments {
    /// Reads the arguments; a mistake in one of them hides no other.
    pub(crate) fn read(arguments: TokenStream, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for Setting { name, value } in read_settings(arguments, errors) {
            let path = match &value {
                Some(Expr::Path(path)) => Some(&path.path),
                _ => None,
            };
            let twice = match name.to_string().as_str() {
                "trait" => match path.and_then(Path::get_ident) {
                    Some(ident) => read.name.replace(ident.clone()).is_some(),
                    None => {
                        let found =
                            value.map_or_else(|| name.to_token_stream(), |v| v.to_token_stream());
                        errors.at(found, "`trait` takes a name, such as `trait = Orders`");
                        false
                    }
                },
                "crate" => match path {
                    Some(path) => read.krate.replace(path.clone()).is_some(),
                    None => {
                        errors.at(
                            &name,
                            "`crate` takes a path, such as `crate = facade::pinned`",
                        );
                        false
                    }
                },
                _ => {
                    errors.at(
                        &name,
                        format!("unknown option `{name}`; there are `trait` and `crate`"),
                    );
                    false
                }
            };
            if twice {
                errors.at(&name, format!("`{name}` is given twice"));
            }
        }
        read
    }
}
