//! What the attributes of the derives and of `#[tray]` have inside: words and `name = value`, separated by commas.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Ident, Meta, Token};

use crate::errors::Errors;

/// A word, or `name = value`.
pub(crate) struct Setting {
    pub(crate) name: Ident,
    pub(crate) value: Option<Expr>,
}

/// Reads the inside of an attribute; a mistake in one setting hides no other.
pub(crate) fn read_settings(inside: TokenStream, errors: &mut Errors) -> Vec<Setting> {
    split_at_commas(inside)
        .into_iter()
        .filter_map(|setting| errors.keep(parse_setting.parse2(setting)))
        .collect()
}

fn parse_setting(input: ParseStream<'_>) -> syn::Result<Setting> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error("expected an option: a word, or `name = value`"));
    }
    let name = input.call(Ident::parse_any)?;
    let value = match input.is_empty() {
        true => None,
        false => {
            input.parse::<Token![=]>()?;
            Some(input.parse()?)
        }
    };
    Ok(Setting { name, value })
}

/// What the attributes `#[name(..)]` of a struct or field say together.
pub(crate) struct Helper {
    /// There is one, be it empty.
    pub(crate) is_present: bool,
    pub(crate) settings: Vec<Setting>,
}

impl Helper {
    pub(crate) fn of(name: &str, attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut helper = Self {
            is_present: false,
            settings: Vec::new(),
        };
        for attribute in attributes {
            if !attribute.path().is_ident(name) {
                continue;
            }
            helper.is_present = true;
            match &attribute.meta {
                Meta::Path(_) => {}
                Meta::List(list) => helper
                    .settings
                    .extend(read_settings(list.tokens.clone(), errors)),
                Meta::NameValue(pair) => errors.at(
                    pair,
                    format!("write `#[{name}(..)]`, with the options in parentheses"),
                ),
            }
        }
        helper
    }
}

/// One stream for each argument; a trailing comma adds none.
pub(super) fn split_at_commas(arguments: TokenStream) -> Vec<TokenStream> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    for tree in arguments {
        match &tree {
            TokenTree::Punct(comma) if comma.as_char() == ',' => {
                parts.push(part.drain(..).collect());
            }
            _ => part.push(tree),
        }
    }
    if !part.is_empty() {
        parts.push(part.into_iter().collect());
    }
    parts
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::{Attribute, parse_quote};

    use super::{Helper, read_settings};
    use crate::errors::Errors;

    #[test]
    fn words_and_values() {
        let mut errors = Errors::default();
        let attributes: Vec<Attribute> = vec![
            parse_quote!(#[tray(items)]),
            parse_quote!(#[doc = "text"]),
            parse_quote!(#[tray(initial = vec![1, 2], crate = a::b,)]),
        ];
        let helper = Helper::of("tray", &attributes, &mut errors);
        assert!(errors.messages().is_empty());
        let names: Vec<String> = helper.settings.iter().map(|s| s.name.to_string()).collect();
        assert_eq!(names, ["items", "initial", "crate"]);
        assert!(helper.settings[0].value.is_none() && helper.settings[1].value.is_some());
    }

    #[test]
    fn one_mistake_hides_no_other() {
        let mut errors = Errors::default();
        let read = read_settings(quote!(5, items(x), initial =, skip), &mut errors);
        assert_eq!(errors.messages().len(), 3);
        assert_eq!(read.len(), 1);
    }
}
