//! The implementation of `Tray`.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Ident;

use super::{at_place, hygienic_at, plain_name};
use crate::model::{FieldKind, Items, OptionValue, TrayField, TraySetting, TrayStruct};

/// `Tray` for a struct.
pub(crate) fn tray(model: &TrayStruct) -> TokenStream {
    let TrayStruct {
        private,
        fields,
        items,
        lifecycle,
        settings,
        ..
    } = model;
    let declared = fields
        .iter()
        .map(|field| declared(private, field, items.as_ref()));
    let visits = fields.iter().filter_map(|declared| {
        let TrayField { ident, ty, .. } = declared;
        let field = kept(private, declared, items.as_ref())?;
        let name = plain_name(ident);
        let at = hygienic_at(ty);
        // In two steps: rustc blames the type then, as where the field is made, and not the argument.
        Some(quote_spanned! {at=>
            let as_field = <#ty as #field>::as_field;
            visit(#name, as_field(&mut self.#ident));
        })
    });
    let visits = quote!(#(#visits)*);
    let at = Span::mixed_site();
    // Without a durable field there is nothing to visit.
    let visit = match visits.is_empty() {
        true => quote_spanned!(at=> _),
        false => quote_spanned!(at=> visit),
    };
    let work = items.as_ref().map(|items| work(private, items));
    let lifecycle = lifecycle.as_ref().map(|word| around(private, word));
    let settings = declared_settings(private, settings);
    implementation(
        model,
        quote_spanned! {at=>
            #settings

            fn declared() -> Self {
                Self { #(#declared),* }
            }

            fn fields(
                &mut self,
                #visit: &mut dyn ::core::ops::FnMut(&'static ::core::primitive::str, &mut dyn #private::Field),
            ) {
                #visits
            }

            #work
            #lifecycle
        },
    )
}

/// An implementation of the right shape that nobody will run: the build has failed already.
pub(crate) fn tray_stub(model: &TrayStruct) -> TokenStream {
    let private = &model.private;
    let item = match &model.items {
        Some(Items::Queue { ty, .. }) => quote!(<#ty as #private::ItemQueue>::Item),
        Some(Items::Source(_)) => quote!(<Self as #private::TraySource>::Item),
        None => quote!(()),
    };
    implementation(
        model,
        quote! {
            type Item = #item;

            const SETTINGS: #private::TraySettings = #private::TraySettings::DEFAULT;

            fn declared() -> Self {
                ::core::unreachable!()
            }

            fn fields(
                &mut self,
                _: &mut dyn ::core::ops::FnMut(&'static ::core::primitive::str, &mut dyn #private::Field),
            ) {
            }

            fn next_item(
                &mut self,
            ) -> ::core::result::Result<::core::option::Option<Self::Item>, #private::BoxError> {
                ::core::unreachable!()
            }

            fn ack_item(&mut self) {}
        },
    )
}

fn implementation(model: &TrayStruct, items: TokenStream) -> TokenStream {
    let TrayStruct {
        private,
        ident,
        generics,
        ..
    } = model;
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    quote! {
        const _: () = {
            #[automatically_derived]
            impl #impl_generics #private::Tray for #ident #ty_generics #where_clause {
                #items
            }
        };
    }
}

/// The trait through which a durable field is made and visited, at the place of its type: whatever is wrong with the
/// type is told once.
fn kept(private: &TokenStream, field: &TrayField, items: Option<&Items>) -> Option<TokenStream> {
    let TrayField { ident, ty, kind } = field;
    let at = hygienic_at(ty);
    let private = at_place(private, at);
    match (kind, items) {
        (FieldKind::Unkept, _) => None,
        (FieldKind::Kept { initial: Some(_) }, _) => {
            Some(quote_spanned!(at=> #private::InitialField))
        }
        (_, Some(Items::Queue { field, .. })) if field == ident => {
            Some(quote_spanned!(at=> #private::DeclaredQueue<Self::Item>))
        }
        _ => Some(quote_spanned!(at=> #private::DeclaredField)),
    }
}

/// `field: value`, in a new one.
fn declared(private: &TokenStream, field: &TrayField, items: Option<&Items>) -> TokenStream {
    let TrayField { ident, ty, kind } = field;
    let at = hygienic_at(ty);
    match (kept(private, field, items), kind) {
        (
            Some(field),
            FieldKind::Kept {
                initial: Some(value),
            },
        ) => {
            quote_spanned!(at=> #ident: <#ty as #field>::with_initial(|| #value))
        }
        (Some(field), _) => quote_spanned!(at=> #ident: <#ty as #field>::declared()),
        (None, _) => {
            let private = at_place(private, at);
            quote_spanned!(at=> #ident: <#ty as #private::UnkeptField>::unkept())
        }
    }
}

fn work(private: &TokenStream, items: &Items) -> TokenStream {
    let (at, item, next, ack) = match items {
        Items::Queue { field, ty } => {
            let at = hygienic_at(ty);
            let private = at_place(private, at);
            let queue = quote_spanned!(at=> <#ty as #private::DeclaredQueue<Self::Item>>);
            (
                at,
                quote_spanned!(at=> <#ty as #private::ItemQueue>::Item),
                quote_spanned!(at=> let next = #queue::next_item; next(&mut self.#field)),
                quote_spanned!(at=> let ack = #queue::ack_item; ack(&mut self.#field);),
            )
        }
        Items::Source(word) => {
            let at = hygienic_at(word);
            let source = at_place(private, at);
            let source = quote_spanned!(at=> <Self as #source::TraySource>);
            (
                at,
                quote_spanned!(at=> #source::Item),
                quote_spanned!(at=> #source::next(self)),
                quote_spanned!(at=> #source::ack(self)),
            )
        }
    };
    quote_spanned! {at=>
        type Item = #item;

        fn next_item(
            &mut self,
        ) -> ::core::result::Result<::core::option::Option<Self::Item>, #private::BoxError> {
            #next
        }

        fn ack_item(&mut self) {
            #ack
        }
    }
}

/// What runs at its opening and at its end.
fn around(private: &TokenStream, word: &Ident) -> TokenStream {
    let at = hygienic_at(word);
    let halves = [("setup", "opened"), ("teardown", "closed")];
    let functions = halves.into_iter().map(|(name, calls)| {
        let (name, calls) = (Ident::new(name, at), Ident::new(calls, at));
        let at_word = at_place(private, at);
        quote_spanned! {at=>
            fn #name(
                tray: #private::TrayHandle<Self>,
            ) -> #private::BoxFuture<'static, ::core::result::Result<(), #private::BoxError>> {
                ::std::boxed::Box::pin(<Self as #at_word::TrayLifecycle>::#calls(tray))
            }
        }
    });
    functions.collect()
}

fn declared_settings(private: &TokenStream, settings: &[TraySetting]) -> TokenStream {
    /// All that `TraySettings` has.
    const ALL: usize = 4;
    let fields = settings.iter().map(|TraySetting { name, value }| {
        let value = match value {
            OptionValue::Millis(millis) => quote!(#private::Duration::from_millis(#millis)),
            OptionValue::Count(count) => {
                let count = Literal::usize_unsuffixed(*count);
                quote!(#count)
            }
            OptionValue::Integer(number) => quote!(#number),
            OptionValue::Flag(flag) => quote!(#flag),
            OptionValue::Text(text) => quote!(#text),
        };
        quote!(#name: #value,)
    });
    let others = (settings.len() < ALL).then(|| quote!(..#private::TraySettings::DEFAULT));
    quote! {
        const SETTINGS: #private::TraySettings = #private::TraySettings { #(#fields)* #others };
    }
}
