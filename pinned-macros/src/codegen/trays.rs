//! Trays of a block: the type-erased handlers and hooks, their table, and the constants by which they are named.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Ident, Type, parse_quote};

use super::{at_place, convert, hygienic_at, plain_name};
use crate::model::{Form, HookFunction, Tray};

/// `const TRAYS`, where there are any.
pub(super) fn table(private: &TokenStream, trays: &[Tray]) -> TokenStream {
    if trays.is_empty() {
        return TokenStream::new();
    }
    let entries = trays.iter().map(|tray| entry(private, tray));
    quote! {
        const TRAYS: &'static [&'static dyn #private::TrayDeclaration] = &[#(#entries),*];
    }
}

fn entry(private: &TokenStream, tray: &Tray) -> TokenStream {
    let Tray {
        ident,
        form,
        tray: of,
        hooks,
        cfg,
        ..
    } = tray;
    let name = plain_name(ident);
    let glue = handler_glue(ident);
    let at = hygienic_at(of);
    let (form, always_open) = match form {
        Form::Single => (quote_spanned!(at=> single), None),
        Form::Map { always_open } => (quote_spanned!(at=> map), Some(quote!(#always_open,))),
    };
    let hooks = hooks.iter().enumerate().map(|(index, hook)| {
        let half = |which: &str, function: &Option<HookFunction>| match function {
            Some(_) => {
                let glue = hook_glue(ident, which, index);
                quote!(::core::option::Option::Some(Self::#glue))
            }
            None => quote!(::core::option::Option::None),
        };
        let open = half("open", &hook.open);
        let close = half("close", &hook.close);
        quote!(#private::TrayHook { open: #open, close: #close })
    });
    let private = at_place(private, at);
    quote_spanned! {at=>
        #cfg
        &#private::DeclaredTray::<Self, #of>::#form(#name, #always_open Self::#glue, &[#(#hooks),*])
    }
}

/// The constant beside the handler, `WORK` of `work`.
pub(super) fn constant(private: &TokenStream, tray: &Tray) -> TokenStream {
    let Tray {
        ident,
        visibility,
        docs,
        form,
        tray: of,
        cfg,
        ..
    } = tray;
    let name = plain_name(ident);
    let constant = capitals(ident);
    let kind = match form {
        Form::Single => quote!(SingleTray),
        Form::Map { .. } => quote!(MappedTray),
    };
    let docs = or_documented(docs, &format!("Names the tray `{}`.", ident.unraw()));
    let at = Span::call_site().located_at(ident.span());
    quote_spanned! {at=>
        #cfg
        #(#docs)*
        #[allow(dead_code)]
        #visibility const #constant: #private::#kind<Self, #of> = #private::#kind::new(#name);
    }
}

/// The docs that there are, or `text`, so that nobody is told to document what they did not write.
pub(super) fn or_documented(docs: &[Attribute], text: &str) -> Vec<Attribute> {
    match docs.is_empty() {
        true => vec![parse_quote!(#[doc = #text])],
        false => docs.to_vec(),
    }
}

fn capitals(handler: &Ident) -> Ident {
    let name = handler.unraw().to_string();
    let parsed = syn::parse_str::<Ident>(&name.to_uppercase());
    // A letter whose capital cannot stand in a name stays as it is.
    let text = parsed.map_or_else(|_| name.to_ascii_uppercase(), |ident| ident.to_string());
    Ident::new(&text, handler.span())
}

/// Calls the handler with its item, and each hook with its tray.
pub(super) fn glue(private: &TokenStream, tray: &Tray) -> TokenStream {
    let Tray {
        ident,
        item,
        tray: of,
        output,
        hooks,
        cfg,
        ..
    } = tray;
    let at = hygienic_at(ident);
    let glue = handler_glue(ident);
    let handled = {
        let at = hygienic_at(item);
        let given = quote_spanned!(hygienic_at(ident)=> item);
        let private = at_place(private, at);
        quote_spanned! {at=>
            <#item as #private::HandledItem<<#of as #private::Tray>::Item>>::handled(#given)
        }
    };
    let call = quote_spanned!(at=> Self::#ident(this, item, dispatch));
    let ended = ended(private, at, output.as_ref(), &call);
    let handler = quote_spanned! {at=>
        #cfg
        #[doc(hidden)]
        #[allow(dead_code)]
        fn #glue(
            this: #private::Instance<Self>,
            item: <#of as #private::Tray>::Item,
            dispatch: #private::Dispatch<#of>,
        ) -> #private::BoxFuture<'static, ::core::result::Result<(), #private::BoxError>> {
            let item = #handled;
            #ended
        }
    };
    let hooks = hooks.iter().enumerate().flat_map(|(index, hook)| {
        let halves = [("open", &hook.open), ("close", &hook.close)];
        halves.into_iter().filter_map(move |(which, function)| {
            let glue = hook_glue(ident, which, index);
            let hook = hook_function(private, of, &glue, function.as_ref()?);
            Some(quote!(#cfg #hook))
        })
    });
    quote!(#handler #(#hooks)*)
}

fn hook_function(
    private: &TokenStream,
    of: &Type,
    glue: &Ident,
    HookFunction { ident, output }: &HookFunction,
) -> TokenStream {
    let at = hygienic_at(ident);
    let call = quote_spanned!(at=> Self::#ident(this, tray));
    let ended = ended(private, at, output.as_ref(), &call);
    quote_spanned! {at=>
        #[doc(hidden)]
        #[allow(dead_code)]
        fn #glue(
            this: #private::Instance<Self>,
            tray: #private::TrayHandle<#of>,
        ) -> #private::BoxFuture<'static, ::core::result::Result<(), #private::BoxError>> {
            #ended
        }
    }
}

/// The future of `call`, and what comes of it.
fn ended(
    private: &TokenStream,
    at: Span,
    output: Option<&Type>,
    call: &TokenStream,
) -> TokenStream {
    let value = quote_spanned!(at=> ended);
    let tr = quote!(#private::TrayReturn);
    let convert = convert(output, at, &tr, "into_tray_return", &value);
    let private = at_place(private, at);
    quote_spanned! {at=>
        ::std::boxed::Box::pin(async move {
            let ended = #private::sendable(#call).await;
            #convert
        })
    }
}

fn handler_glue(handler: &Ident) -> Ident {
    format_ident!("__pinned_tray_{}", handler, span = Span::call_site())
}

fn hook_glue(handler: &Ident, which: &str, index: usize) -> Ident {
    format_ident!(
        "__pinned_tray_{}_{}_{}",
        handler,
        which,
        index,
        span = Span::call_site()
    )
}
