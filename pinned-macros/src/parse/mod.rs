//! Syntax as the user wrote it. Rules about what may stand where are `crate::validate`'s.

mod annotation;
mod arguments;
mod block;
mod cfg;
mod inbox;
mod options;
mod route;
mod tray;

pub(crate) use annotation::{Annotated, Annotation, take_annotations, written};
pub(crate) use arguments::{ApiArguments, OptionArgument};
pub(crate) use block::{Block, BlockItem, Method, parse_block};
pub(crate) use cfg::conditions_of;
pub(crate) use inbox::InboxArguments;
pub(crate) use options::{Helper, Setting};
pub(crate) use route::{AuthArgument, RouteArguments};
pub(crate) use tray::{Half, HookArgument, TrayArguments};

use syn::{Attribute, GenericArgument, PathArguments, PathSegment, Type};

/// The type without the invisible groups that macro variables leave around it.
pub(crate) fn ungrouped(mut ty: &Type) -> &Type {
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    ty
}

/// The doc comments among the attributes.
pub(crate) fn docs_of(attributes: &[Attribute]) -> Vec<Attribute> {
    let docs = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"));
    docs.cloned().collect()
}

/// The last segment of a plain path type.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ungrouped(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

/// `T` of `Name<T>`, with any path before `Name`.
pub(crate) fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => {
            match (arguments.args.first()?, arguments.args.len()) {
                (GenericArgument::Type(inner), 1) => Some(inner),
                _ => None,
            }
        }
        _ => None,
    }
}
