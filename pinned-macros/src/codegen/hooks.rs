//! The methods of `PinnedApi` that call setup, teardown and stats.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use super::{at_place, convert, hygienic_at};
use crate::model::{Cfg, Hook, Setup, Target};

pub(super) fn setup(target: &Target, setups: &[Setup]) -> TokenStream {
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
    let own = setups.iter().map(|Setup { hook, stored }| {
        let Hook { ident, output, cfg } = hook;
        let at = hygienic_at(ident);
        let value = quote_spanned!(at=> value);
        let convert = convert(
            output.as_ref(),
            at,
            &quote!(#private::SetupReturn::<Self>),
            "into_setup",
            &value,
        );
        let given = stored.as_ref().map(|_| quote_spanned!(at=> stored));
        let load = stored.as_ref().map(|ty| load(private, at, ty));
        let body = quote_spanned! {at=>
            ::std::boxed::Box::pin(async move {
                #load
                let value = Self::#ident(ctx, #given).await;
                #convert
            })
        };
        let function = function(at, body);
        quote!(#cfg #function)
    });
    // Without a setup there is what is stored, or `Default`; a struct that has neither is underlined in the block's header.
    let default = (!setups.iter().any(|setup| setup.hook.cfg.is_always())).then(|| {
        let cfg = match setups.is_empty() {
            true => Cfg::default(),
            false => Cfg::none_of(setups.iter().map(|setup| &setup.hook.cfg)),
        };
        let at = hygienic_at(self_ty);
        let body = quote_spanned! {at=>
            #[allow(unused_imports)]
            use #private::{FromDefault as _, FromStored as _};
            (&#private::WithoutSetup::<#self_ty>::NEW).make(ctx)
        };
        let function = function(at, body);
        quote!(#cfg #function)
    });
    quote!(#(#own)* #default)
}

/// What is stored of the instance, for its setup.
fn load(private: &TokenStream, at: Span, stored: &Type) -> TokenStream {
    let ctx = quote_spanned!(at=> ctx);
    let load = {
        let at = hygienic_at(stored);
        let private = at_place(private, at);
        quote_spanned!(at=> #private::load_stored::<Self>(::core::clone::Clone::clone(&#ctx)).await)
    };
    quote_spanned! {at=>
        let stored = match #load {
            ::core::result::Result::Ok(stored) => stored,
            ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
        };
    }
}

/// Whether instances keep anything: trays, what durable routes wait for, durable fields.
pub(super) fn needs_store(Target { private, .. }: &Target) -> TokenStream {
    quote! {
        fn needs_store() -> ::core::primitive::bool {
            #[allow(unused_imports)]
            use #private::{IsDurable as _, IsNotDurable as _};
            #private::needs_store::<Self>((&#private::WithoutSetup::<Self>::NEW).is_durable())
        }
    }
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
