//! The methods of `PinnedApi` that call setup, teardown and stats.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{convert, hygienic_at};
use crate::model::{Cfg, Hook, Target};

pub(super) fn setup(target: &Target, setups: &[Hook]) -> TokenStream {
    let Target {
        private, self_ty, ..
    } = target;
    let function = |at: Span, body: TokenStream| {
        quote_spanned! {at=>
            fn setup(
                ctx: #private::Context,
            ) -> #private::BoxFuture<'static, ::core::result::Result<Self, #private::SetupError>> {
                #body
            }
        }
    };
    let own = setups.iter().map(|Hook { ident, output, cfg }| {
        let at = hygienic_at(ident);
        let value = quote_spanned!(at=> value);
        let convert = convert(
            output.as_ref(),
            at,
            &quote!(#private::SetupReturn::<Self>),
            "into_setup",
            &value,
        );
        let body = quote_spanned! {at=>
            ::std::boxed::Box::pin(async move {
                let value = Self::#ident(ctx).await;
                #convert
            })
        };
        let function = function(at, body);
        quote!(#cfg #function)
    });
    // Without a setup there is `Default`; a struct that has none is underlined in the block's header.
    let default = (!setups.iter().any(|hook| hook.cfg.is_always())).then(|| {
        let cfg = match setups.is_empty() {
            true => Cfg::default(),
            false => Cfg::none_of(setups.iter().map(|hook| &hook.cfg)),
        };
        let at = hygienic_at(self_ty);
        let body = quote_spanned! {at=>
            let _ = ctx;
            #private::default_setup::<#self_ty>()
        };
        let function = function(at, body);
        quote!(#cfg #function)
    });
    quote!(#(#own)* #default)
}

pub(super) fn teardown(private: &TokenStream, teardowns: &[Hook]) -> TokenStream {
    let own = teardowns.iter().map(|Hook { ident, output, cfg }| {
        let at = hygienic_at(ident);
        let value = quote_spanned!(at=> value);
        let convert = convert(
            output.as_ref(),
            at,
            &quote!(#private::TeardownReturn),
            "into_teardown",
            &value,
        );
        quote_spanned! {at=>
            #cfg
            fn teardown(
                &mut self,
            ) -> #private::BoxFuture<'_, ::core::result::Result<(), #private::BoxError>> {
                ::std::boxed::Box::pin(async move {
                    let value = Self::#ident(self).await;
                    #convert
                })
            }
        }
    });
    own.collect()
}

pub(super) fn stats(private: &TokenStream, stats: &[Hook]) -> TokenStream {
    let own = stats.iter().map(|Hook { ident, output, cfg }| {
        let at = hygienic_at(ident);
        let row = quote_spanned!(at=> &Self::#ident(self));
        let value = match output {
            Some(output) => {
                quote_spanned!(hygienic_at(output)=> #private::to_value::<&#output>(#row))
            }
            None => quote_spanned!(at=> #private::to_value(#row)),
        };
        quote_spanned! {at=>
            #cfg
            fn stats(
                &self,
            ) -> ::core::option::Option<::core::result::Result<#private::Value, #private::JsonError>> {
                ::core::option::Option::Some(#value)
            }
        }
    });
    own.collect()
}
