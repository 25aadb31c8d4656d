//! What the block stands on.

use quote::ToTokens;
use syn::{GenericParam, ItemImpl, Type};

use crate::errors::Errors;
use crate::model::Target;
use crate::parse::ungrouped;

/// The block is the struct's own.
pub(super) fn check_header(header: &ItemImpl, errors: &mut Errors) {
    if let Some((trait_path, _)) = &header.trait_ {
        errors.at(
            trait_path,
            "`#[pinned_api]` stands on an inherent impl block, not on a trait's: write \
             `impl MyStruct { .. }`",
        );
    }
}

/// The struct is plain, and concrete where it has a namespace.
pub(super) fn check(target: &Target, has_namespace: bool, errors: &mut Errors) {
    let Target {
        self_ty, generics, ..
    } = target;
    if !matches!(ungrouped(self_ty), Type::Path(_)) {
        errors.at(
            self_ty,
            "`#[pinned_api]` stands on an impl block of a plain struct: name the struct here",
        );
    }
    let mut borrows = false;
    for param in &generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            borrows = true;
            errors.at(
                lifetime,
                "an instance outlives every request and cannot borrow: let the struct own its data \
                 (`String`, `Arc<T>`) and drop the lifetime",
            );
        }
    }
    if has_namespace && !borrows && !generics.params.is_empty() {
        let name = self_ty.to_token_stream().to_string().replace(' ', "");
        errors.at(
            generics,
            format!(
                "a struct with a namespace is served as it is and cannot be generic: drop the namespace \
                 from `#[pinned_api]` and mount each concrete type by hand, as in \
                 `PinnedWorker::builder().host::<{name}>(\"/ns\")`"
            ),
        );
    }
}
