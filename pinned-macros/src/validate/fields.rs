//! What the derives stand on, and their helper attributes.

use syn::{Data, DeriveInput, Expr, Fields, FieldsNamed, GenericParam, Ident, Path};

use crate::errors::Errors;
use crate::parse::Setting;

/// The fields of a plain struct, which owns what it has.
pub(super) fn named<'a>(
    derive: &str,
    input: &'a DeriveInput,
    errors: &mut Errors,
) -> Option<&'a FieldsNamed> {
    let ident = &input.ident;
    let wanted = format!(
        "`#[derive({derive})]` stands on a struct with named fields: write `struct {ident} {{ .. }}`"
    );
    for param in &input.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(
                lifetime,
                "what is kept in a store cannot borrow: let the struct own its data and drop the lifetime",
            );
        }
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Some(fields),
            Fields::Unnamed(fields) => errors.at(
                fields,
                format!("these fields have no names, by which they could be stored. {wanted}"),
            ),
            Fields::Unit => errors.at(ident, wanted),
        },
        Data::Enum(data) => errors.at(data.enum_token, wanted),
        Data::Union(data) => errors.at(data.union_token, wanted),
    }
    None
}

/// Words and values, each given once.
pub(super) struct Once<'a> {
    seen: Vec<&'a Ident>,
}

impl<'a> Once<'a> {
    pub(super) fn new() -> Self {
        Self { seen: Vec::new() }
    }

    /// Whether this is the first of its name.
    pub(super) fn is_first(&mut self, name: &'a Ident, errors: &mut Errors) -> bool {
        let first = !self.seen.contains(&name);
        match first {
            true => self.seen.push(name),
            false => errors.at(name, format!("`{name}` is given twice")),
        }
        first
    }
}

/// A word stands alone.
pub(super) fn word(setting: &Setting, errors: &mut Errors) {
    if let Some(value) = &setting.value {
        let name = &setting.name;
        errors.at(
            value,
            format!("`{name}` stands alone: write `{name}`, or leave it out"),
        );
    }
}

/// `initial = expression`.
pub(super) fn initial(setting: &Setting, errors: &mut Errors) -> Option<Expr> {
    if setting.value.is_none() {
        errors.at(
            &setting.name,
            "`initial` takes the value that the field holds at first, such as `initial = 100`",
        );
    }
    setting.value.clone()
}

/// `crate = path`.
pub(super) fn krate<'a>(setting: &'a Setting, errors: &mut Errors) -> Option<&'a Path> {
    match &setting.value {
        Some(Expr::Path(path)) => Some(&path.path),
        _ => {
            errors.at(
                &setting.name,
                "`crate` takes a path, such as `crate = facade::pinned`",
            );
            None
        }
    }
}
