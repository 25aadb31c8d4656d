//! The struct of what is stored, and the implementation of `Durable`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{GenericParam, Ident, Type};

use super::trays::or_documented;
use super::{at_place, hygienic_at, plain_name};
use crate::model::{DurableField, DurableStruct, FieldKind};

/// `Durable` for a struct.
pub(crate) fn durable(model: &DurableStruct) -> TokenStream {
    let DurableStruct {
        private,
        fields,
        by_setup,
        ..
    } = model;
    let new = kept(fields).map(
        |DurableField {
             ident, ty, kind, ..
         }| {
            let at = hygienic_at(ty);
            let field = own(private, ty, kind);
            match kind {
                FieldKind::Kept {
                    initial: Some(value),
                } => {
                    quote_spanned!(at=> #ident: <#ty as #field>::with_initial(|| #value))
                }
                _ => quote_spanned!(at=> #ident: <#ty as #field>::declared()),
            }
        },
    );
    let rest = unused(model).map(|_| quote!(__pinned: ::core::marker::PhantomData,));
    let visits = kept(fields).map(
        |DurableField {
             ident, ty, kind, ..
         }| {
            let name = plain_name(ident);
            let at = hygienic_at(ty);
            let field = own(private, ty, kind);
            // In two steps: rustc blames the type then, as where the field is made, and not the argument.
            quote_spanned! {at=>
                let as_own = <#ty as #field>::as_own;
                visit(#name, as_own(&mut stored.#ident));
            }
        },
    );
    let at = proc_macro2::Span::mixed_site();
    let (stored, visit) = (quote_spanned!(at=> stored), quote_spanned!(at=> visit));
    let visits = quote!(#(#visits)*);
    let durable = quote! {
        fn declared() -> Self::Stored {
            Self::Stored { #(#new,)* #rest }
        }

        fn fields(
            #stored: &mut Self::Stored,
            #visit: &mut dyn ::core::ops::FnMut(&'static ::core::primitive::str, &mut dyn #private::OwnField),
        ) {
            #visits
        }
    };
    let made = fields.iter().map(
        |DurableField {
             ident, ty, kind, ..
         }| match kind {
            FieldKind::Kept { .. } => quote!(#ident: #stored.#ident),
            FieldKind::Unkept => {
                let at = hygienic_at(ty);
                let private = at_place(private, at);
                quote_spanned!(at=> #ident: <#ty as #private::UnkeptField>::unkept())
            }
        },
    );
    let by_default = (!by_setup).then(|| quote!(Self { #(#made),* }));
    implementation(model, &stored, durable, by_default)
}

/// An implementation of the right shape that nobody will run: the build has failed already.
pub(crate) fn durable_stub(model: &DurableStruct) -> TokenStream {
    let private = &model.private;
    let durable = quote! {
        fn declared() -> Self::Stored {
            ::core::unreachable!()
        }

        fn fields(
            _: &mut Self::Stored,
            _: &mut dyn ::core::ops::FnMut(&'static ::core::primitive::str, &mut dyn #private::OwnField),
        ) {
        }
    };
    let by_default = (!model.by_setup).then(|| quote!(::core::unreachable!()));
    implementation(model, &quote!(_), durable, by_default)
}

/// The trait through which a durable field is made and visited, at the place of its type: whatever is wrong with the
/// type is told once.
fn own(private: &TokenStream, ty: &Type, kind: &FieldKind) -> TokenStream {
    let at = hygienic_at(ty);
    let private = at_place(private, at);
    match kind {
        FieldKind::Kept { initial: Some(_) } => quote_spanned!(at=> #private::OwnInitial),
        _ => quote_spanned!(at=> #private::OwnDeclared),
    }
}

fn kept(fields: &[DurableField]) -> impl Iterator<Item = &DurableField> {
    fields
        .iter()
        .filter(|field| matches!(field.kind, FieldKind::Kept { .. }))
}

fn implementation(
    model: &DurableStruct,
    stored_argument: &TokenStream,
    durable: TokenStream,
    by_default: Option<TokenStream>,
) -> TokenStream {
    let DurableStruct {
        private,
        ident,
        generics,
        ..
    } = model;
    let stored = format_ident!("{}Stored", ident.unraw(), span = ident.span());
    let declaration = declaration(model, &stored);
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let by_default = by_default.map(|made| {
        quote! {
            #[automatically_derived]
            impl #impl_generics #private::DurableByDefault for #ident #ty_generics #where_clause {
                fn from_stored(#stored_argument: Self::Stored) -> Self {
                    #made
                }
            }
        }
    });
    quote! {
        #declaration

        const _: () = {
            #[automatically_derived]
            impl #impl_generics #private::Durable for #ident #ty_generics #where_clause {
                type Stored = #stored #ty_generics;

                #durable
            }

            #by_default
        };
    }
}

/// The durable fields alone.
fn declaration(model: &DurableStruct, stored: &Ident) -> TokenStream {
    let DurableStruct {
        visibility,
        ident,
        generics,
        fields,
        ..
    } = model;
    let where_clause = &generics.where_clause;
    let (impl_generics, ty_generics, _) = generics.split_for_impl();
    let about = format!(
        "What is stored of [`{}`], as its setup is given it.",
        ident.unraw()
    );
    let fields = kept(fields).map(|field| {
        let DurableField {
            visibility,
            docs,
            ident,
            ty,
            ..
        } = field;
        let docs = or_documented(docs, &format!("What is stored of `{}`.", ident.unraw()));
        quote!(#(#docs)* #visibility #ident: #ty,)
    });
    let unused = unused(model);
    let name = stored.to_string();
    // Not what is in it: that is the user's to show.
    quote! {
        #[doc = #about]
        #visibility struct #stored #generics #where_clause {
            #(#fields)*
            #unused
        }

        const _: () = {
            #[automatically_derived]
            impl #impl_generics ::core::fmt::Debug for #stored #ty_generics #where_clause {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Formatter::debug_struct(f, #name).finish_non_exhaustive()
                }
            }
        };
    }
}

/// A field for the type parameters that no durable field may have.
fn unused(model: &DurableStruct) -> Option<TokenStream> {
    let types = model
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            _ => None,
        });
    let types: Vec<&Ident> = types.collect();
    (!types.is_empty()).then(|| {
        quote! {
            #[doc(hidden)]
            __pinned: ::core::marker::PhantomData<fn() -> (#(#types,)*)>,
        }
    })
}
