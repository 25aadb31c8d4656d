//! The annotated item: an impl block whose bodies stay raw tokens, so that editors keep completing inside
//! a half-typed body and the macro never pays for parsing one.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, ImplItem, Item, ItemImpl, Signature, Token, Visibility, token};

/// An impl block.
pub(crate) struct Block {
    /// The block with an empty body.
    pub(crate) header: ItemImpl,
    header_tokens: TokenStream,
    body: Group,
    inner_attributes: Vec<Attribute>,
    pub(crate) items: Vec<BlockItem>,
}

/// One item of an impl block.
pub(crate) enum BlockItem {
    Method(Box<Method>),
    Other(TokenStream),
}

/// A method with its body as written.
pub(crate) struct Method {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    defaultness: Option<Token![default]>,
    pub(crate) signature: Signature,
    body: TokenStream,
}

/// Reads the annotated item, or says what it is instead of an impl block.
pub(crate) fn parse_block(attribute: &str, item: TokenStream) -> syn::Result<Block> {
    let item = flattened(item);
    let mut trees: Vec<TokenTree> = item.clone().into_iter().collect();
    let body = match trees.pop() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => group,
        _ => return Err(not_an_impl(attribute, item)),
    };
    let header_tokens: TokenStream = trees.into_iter().collect();
    let Ok(header) = syn::parse2::<ItemImpl>(quote!(#header_tokens {})) else {
        return Err(not_an_impl(attribute, item));
    };
    let (inner_attributes, items) = parse_body.parse2(body.stream())?;
    Ok(Block {
        header,
        header_tokens,
        body,
        inner_attributes,
        items,
    })
}

/// The item without the invisible group that `$item:item` leaves around it.
fn flattened(item: TokenStream) -> TokenStream {
    let mut trees = item.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            flattened(group.stream())
        }
        _ => item,
    }
}

fn parse_body(input: ParseStream<'_>) -> syn::Result<(Vec<Attribute>, Vec<BlockItem>)> {
    let inner_attributes = input.call(Attribute::parse_inner)?;
    let mut items = Vec::new();
    while !input.is_empty() {
        items.push(parse_item(input)?);
    }
    Ok((inner_attributes, items))
}

fn parse_item(input: ParseStream<'_>) -> syn::Result<BlockItem> {
    let attributes = input.call(Attribute::parse_outer)?;
    let visibility = input.parse()?;
    if !stands_before_fn(&input.fork()) {
        let rest: ImplItem = input.parse()?;
        return Ok(BlockItem::Other(quote!(#(#attributes)* #visibility #rest)));
    }
    Ok(BlockItem::Method(Box::new(Method {
        attributes,
        visibility,
        defaultness: input.parse()?,
        signature: input.parse()?,
        // A body, or the `;` that rustc is going to complain about.
        body: input.parse::<TokenTree>()?.into(),
    })))
}

/// Whether `fn` comes next, after the words that may stand before it.
fn stands_before_fn(ahead: ParseStream<'_>) -> bool {
    loop {
        if ahead.peek(Token![fn]) {
            return true;
        }
        let modifier = ahead.peek(Token![const])
            || ahead.peek(Token![async])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern])
            || ahead.peek(Token![default])
            || ahead.peek(syn::LitStr);
        if !modifier || ahead.parse::<TokenTree>().is_err() {
            return false;
        }
    }
}

fn not_an_impl(attribute: &str, item: TokenStream) -> syn::Error {
    let advice = |what: &str, name: &str| {
        format!(
            "`#[{attribute}]` stands on an inherent impl block, not on {what}: \
             move it to `impl {name} {{ .. }}`"
        )
    };
    let here = |tokens: &dyn ToTokens, what: &str, ident: Option<&Ident>| {
        let name = ident.map_or_else(|| "MyStruct".to_owned(), Ident::to_string);
        syn::Error::new_spanned(tokens.to_token_stream(), advice(what, &name))
    };
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(item)) => here(&item.struct_token, "a struct", Some(&item.ident)),
        Ok(Item::Enum(item)) => here(&item.enum_token, "an enum", Some(&item.ident)),
        Ok(Item::Union(item)) => here(&item.union_token, "a union", Some(&item.ident)),
        Ok(Item::Fn(item)) => here(&item.sig.fn_token, "a function", None),
        Ok(Item::Mod(item)) => here(&item.mod_token, "a module", None),
        Ok(Item::Trait(item)) => here(&item.trait_token, "a trait", None),
        Ok(_) => here(&item, "this item", None),
        Err(error) => error,
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.header_tokens.to_tokens(tokens);
        let braces = token::Brace(self.body.span());
        braces.surround(tokens, |inside| {
            // Inner attributes print as such: their style is kept.
            inside.extend(self.inner_attributes.iter().map(ToTokens::to_token_stream));
            inside.extend(self.items.iter().map(ToTokens::to_token_stream));
        });
    }
}

impl ToTokens for BlockItem {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Method(method) => method.to_tokens(tokens),
            Self::Other(other) => other.to_tokens(tokens),
        }
    }
}

impl ToTokens for Method {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for attribute in &self.attributes {
            attribute.to_tokens(tokens);
        }
        self.visibility.to_tokens(tokens);
        self.defaultness.to_tokens(tokens);
        self.signature.to_tokens(tokens);
        self.body.to_tokens(tokens);
    }
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens, quote};

    use super::{BlockItem, parse_block};

    fn refusal(item: proc_macro2::TokenStream) -> String {
        parse_block("pinned_api", item)
            .err()
            .expect("not an impl block")
            .to_string()
    }

    #[test]
    fn a_block_prints_as_it_was_written() {
        let source = quote! {
            #[allow(dead_code)]
            impl<T: Clone> Chat<T> where T: Send {
                #![allow(unused)]
                const LIMIT: usize = 3;
                #[doc = "Says."]
                pub(crate) async fn say(&mut self, #[cfg(test)] n: u64) -> u64 { half typed . }
                extern "C" fn raw() {}
                something! { a b }
                pub type X = u8;
            }
        };
        let block = parse_block("pinned_api", source.clone()).unwrap();
        assert_eq!(block.to_token_stream().to_string(), source.to_string());
        let methods = block
            .items
            .iter()
            .filter(|item| matches!(item, BlockItem::Method(_)));
        assert_eq!(methods.count(), 2);
    }

    #[test]
    fn other_items_are_named() {
        assert!(
            refusal(quote!(
                struct Counter;
            ))
            .contains("not on a struct: move it to `impl Counter")
        );
        assert!(
            refusal(quote!(
                struct Counter {
                    count: u64,
                }
            ))
            .contains("not on a struct")
        );
        assert!(
            refusal(quote!(
                fn main() {}
            ))
            .contains("not on a function")
        );
        assert!(
            refusal(quote!(
                mod a {}
            ))
            .contains("not on a module")
        );
        assert!(
            refusal(quote!(
                const A: u8 = 1;
            ))
            .contains("not on this item")
        );
    }
}
