//! The trait by which an inbox is called on a tray's handle.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;

use super::trays::or_documented;
use super::{at_place, convert, hygienic_at};
use crate::model::{Admission, AdmissionArgument, Inbox};

/// The trait and its implementation; after a mistake one that nobody will run.
pub(crate) fn inbox(inbox: &Inbox, is_stub: bool) -> TokenStream {
    let Inbox {
        private,
        tray,
        generics,
        name,
        visibility,
        admissions,
        cfg,
    } = inbox;
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let about = format!(
        "The admissions of `{}`, on the handle of a tray of it.",
        quote!(#tray).to_string().replace(' ', "")
    );
    let declarations = admissions.iter().map(|admission| {
        let Admission {
            docs, ident, cfg, ..
        } = admission;
        let docs = or_documented(docs, &format!("Admits `{}`.", ident.unraw()));
        let signature = signature(private, admission);
        quote!(#cfg #(#docs)* #signature;)
    });
    let implementations = admissions.iter().map(|admission| {
        let cfg = &admission.cfg;
        let signature = signature(private, admission);
        let body = match is_stub {
            true => quote!(::core::unreachable!()),
            false => body(inbox, admission),
        };
        let allowed = is_stub.then(|| quote!(#[allow(unused_variables)]));
        quote!(#cfg #allowed #signature { #body })
    });
    let handle = handle(private, tray);
    quote! {
        #cfg
        #[doc = #about]
        #[allow(dead_code)]
        #visibility trait #name #impl_generics #where_clause {
            #(#declarations)*
        }

        #cfg
        const _: () = {
            impl #impl_generics #name #ty_generics for #handle #where_clause {
                #(#implementations)*
            }
        };
    }
}

/// `TrayHandle<Work>`, at the place of `Work`.
fn handle(private: &TokenStream, tray: &Type) -> TokenStream {
    let at = hygienic_at(tray);
    let private = at_place(private, at);
    quote_spanned!(at=> #private::TrayHandle<#tray>)
}

fn signature(private: &TokenStream, admission: &Admission) -> TokenStream {
    let Admission {
        ident, arguments, ..
    } = admission;
    let arguments = arguments
        .iter()
        .map(|AdmissionArgument { ident, ty, cfg }| quote!(#cfg #ident: #ty));
    quote! {
        fn #ident(
            &self,
            #(#arguments),*
        ) -> ::core::result::Result<#private::Receipt, #private::TrayError>
    }
}

fn body(inbox: &Inbox, admission: &Admission) -> TokenStream {
    let Inbox { private, tray, .. } = inbox;
    let Admission {
        ident,
        arguments,
        output,
        ..
    } = admission;
    let at = hygienic_at(ident);
    let given = arguments
        .iter()
        .map(|AdmissionArgument { ident, cfg, .. }| quote!(#cfg #ident));
    let admitted = quote_spanned!(at=> <#tray>::#ident(tray, #(#given),*));
    let tr = quote!(#private::AdmissionReturn);
    let convert = convert(output.as_ref(), at, &tr, "into_admission", &admitted);
    let this = quote_spanned!(Span::call_site()=> self);
    let handle = handle(private, tray);
    quote_spanned! {at=>
        <#handle>::admit(#this, move |tray| #convert)
    }
}
