//! `#[cfg]`, and the `cfg` inside `#[cfg_attr]`: an attribute macro sees both before rustc applies them.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

use crate::model::Cfg;

/// `#[cfg_attr(predicate, metas)]`.
pub(super) struct CfgAttr {
    pub(super) predicate: TokenStream,
    pub(super) metas: Vec<Meta>,
}

impl CfgAttr {
    /// Reads a meta as `cfg_attr`, if it is one; a malformed one is left for rustc to refuse.
    pub(super) fn of(meta: &Meta) -> Option<Self> {
        let list = meta.require_list().ok()?;
        if !list.path.is_ident("cfg_attr") {
            return None;
        }
        let read = |input: ParseStream<'_>| {
            let predicate: Meta = input.parse()?;
            input.parse::<Token![,]>()?;
            let metas = Punctuated::<Meta, Token![,]>::parse_terminated(input)?;
            Ok(Self {
                predicate: quote!(#predicate),
                metas: metas.into_iter().collect(),
            })
        };
        read.parse2(list.tokens.clone()).ok()
    }

    /// The same as an attribute's inside.
    pub(super) fn to_meta(&self) -> Meta {
        let Self { predicate, metas } = self;
        syn::parse_quote!(cfg_attr(#predicate, #(#metas),*))
    }
}

/// The conditions that these attributes put on their item.
pub(crate) fn conditions_of(attributes: &[Attribute]) -> Cfg {
    attributes
        .iter()
        .fold(Cfg::default(), |cfg, attribute| add(cfg, &attribute.meta))
}

fn add(cfg: Cfg, meta: &Meta) -> Cfg {
    if meta.path().is_ident("cfg") {
        return match meta.require_list() {
            Ok(list) => cfg.and(list.tokens.clone()),
            Err(_) => cfg,
        };
    }
    let Some(CfgAttr { predicate, metas }) = CfgAttr::of(meta) else {
        return cfg;
    };
    // `cfg_attr(a, cfg(b))` compiles the item where `b` holds or `a` does not.
    let inner = metas.iter().fold(Cfg::default(), add);
    if inner.is_always() {
        return cfg;
    }
    let inner = inner.predicate();
    cfg.and(quote!(any(not(#predicate), #inner)))
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens, quote};
    use syn::{Attribute, parse_quote};

    use super::conditions_of;

    #[test]
    fn only_conditions_are_taken() {
        let attributes: Vec<Attribute> = vec![
            parse_quote!(#[doc = "text"]),
            parse_quote!(#[cfg(unix)]),
            parse_quote!(#[cfg_attr(test, allow(dead_code))]),
            parse_quote!(#[cfg_attr(test, cfg(windows), inline)]),
        ];
        assert_eq!(
            conditions_of(&attributes).to_token_stream().to_string(),
            quote!(#[cfg(unix)] #[cfg(any(not(test), all(windows)))]).to_string()
        );
    }
}
