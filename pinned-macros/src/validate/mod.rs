//! The rules, and the way from syntax to `model`. A broken rule is recorded and the walk goes on, so that
//! one build shows every mistake of a block.
//!
//! | file | rules about |
//! |---|---|
//! | `target` | the block: what it stands on, generics |
//! | `namespace` | `"/counters"` |
//! | `options` | names and values of options |
//! | `roles` | which method does what, and how many may |
//! | `shape` | what every annotated function keeps to |
//! | `hooks` | setup, teardown, stats |
//! | `authorizer` | `#[authorize]` and `auth = Self::other` |
//! | `handler` | receivers and sockets |
//! | `tray` | `#[tray]` and its hooks |
//! | `arguments` | what a handler takes and returns |
//! | `path` | one route's path |
//! | `table` | the paths of a block together |
//! | `fields` | what the derives stand on |
//! | `tray_struct` | `#[derive(Tray)]` |
//! | `durable_struct` | `#[derive(Durable)]` |
//! | `inbox` | `#[inbox]` |

mod arguments;
mod authorizer;
mod durable_struct;
mod fields;
mod handler;
mod hooks;
mod inbox;
mod namespace;
mod options;
mod path;
mod roles;
mod shape;
mod table;
mod target;
mod tray;
mod tray_struct;

pub(crate) use durable_struct::lower as lower_durable_struct;
pub(crate) use inbox::lower as lower_inbox;
pub(crate) use tray_struct::lower as lower_tray_struct;

use proc_macro2::Span;

use crate::errors::Errors;
use crate::krate;
use crate::model::{Api, Consumed, Target};
use crate::parse::{Annotated, ApiArguments, Block, BlockItem, Method, take_annotations};

/// A method with those of its attributes that are ours.
struct AnnotatedMethod<'a> {
    method: &'a Method,
    annotations: Vec<Annotated>,
}

/// Takes our attributes off the methods of a block.
fn take_all<'a>(block: &'a mut Block, errors: &mut Errors) -> Vec<AnnotatedMethod<'a>> {
    let methods = block.items.iter_mut().filter_map(|item| match item {
        BlockItem::Method(method) => Some(method),
        BlockItem::Other(_) => None,
    });
    methods
        .map(|method| {
            let annotations = take_annotations(&mut method.attributes, errors);
            let method = &**method;
            AnnotatedMethod {
                method,
                annotations,
            }
        })
        .collect()
}

/// Checks a block. The model is whole only if nothing was recorded in `errors`.
pub(crate) fn lower(
    block: &mut Block,
    arguments: ApiArguments,
    attribute: Span,
    errors: &mut Errors,
) -> Api {
    let header = block.header.clone();
    let methods = take_all(block, errors);
    let target = Target {
        private: krate::private(arguments.krate.as_ref()),
        attribute,
        self_ty: (*header.self_ty).clone(),
        generics: header.generics.clone(),
        cfg: crate::parse::conditions_of(&header.attrs),
        consumed: consumed(&methods),
    };
    target::check_header(&header, errors);
    target::check(&target, arguments.namespace.is_some(), errors);
    if let Some(namespace) = &arguments.namespace {
        namespace::check(namespace, errors);
    }
    let options = options::lower(&arguments.options, errors);

    let roles = roles::assign(&methods, errors);
    let setups = roles
        .setups
        .iter()
        .filter_map(|m| hooks::setup(m, &target.self_ty, errors))
        .collect();
    let teardowns = roles
        .teardowns
        .iter()
        .filter_map(|m| hooks::teardown(m, errors))
        .collect();
    let stats = roles
        .stats
        .iter()
        .filter_map(|m| hooks::stats(m, errors))
        .collect();
    let authorizers = authorizer::lower(&methods, &roles, errors);
    let handlers: Vec<_> = roles
        .handlers
        .iter()
        .filter_map(|handler| handler::lower(handler, &target.self_ty, &roles, errors))
        .collect();
    table::check(&handlers, errors);
    let trays = roles
        .trays
        .iter()
        .filter_map(|tray| tray::lower(tray, &methods, &target.self_ty, errors))
        .collect();
    let trays = tray::check_names(trays, errors);

    Api {
        target,
        namespace: arguments.namespace,
        options,
        setups,
        teardowns,
        stats,
        authorizers,
        handlers,
        trays,
    }
}

fn consumed(methods: &[AnnotatedMethod<'_>]) -> Vec<Consumed> {
    let mut seen = std::collections::HashSet::new();
    let mut consumed = Vec::new();
    for AnnotatedMethod {
        method,
        annotations,
    } in methods
    {
        let method_cfg = crate::parse::conditions_of(&method.attributes);
        for Annotated { path, cfg, .. } in annotations {
            let cfg = method_cfg.and_all(cfg);
            if seen.insert(quote::quote!(#cfg #path).to_string()) {
                let path = path.clone();
                consumed.push(Consumed { path, cfg });
            }
        }
    }
    consumed
}
