//! Tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Where a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    /// Numbers.
    Right,
}

/// A heading and rows below it, in columns with two spaces between; ends with a line break.
pub(super) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(columns.iter().map(|(name, _)| *name));
    for row in rows {
        table.add_row(row.iter().map(|cell| plain(cell)));
    }
    for (column, (_, align)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        column.set_cell_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Text that others wrote, on one line and without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            let harmless = !c.is_control() && !BIDIRECTIONAL.contains(&c);
            if harmless {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

/// Characters that change in which order others are shown.
const BIDIRECTIONAL: [char; 12] = [
    '\u{061C}', '\u{200E}', '\u{200F}', '\u{202A}', '\u{202B}', '\u{202C}', '\u{202D}', '\u{202E}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let columns = [("NAME", Align::Left), ("COUNT", Align::Right)];
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["much longer".to_owned(), "1000000".to_owned()],
        ];
        let expected = "\
NAME           COUNT\n\
a                  1\n\
much longer  1000000\n";
        assert_eq!(table(&columns, &rows), expected);
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        assert_eq!(
            plain("a\x1b[31m\u{9b}\u{202e}b\nc"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}c"
        );
    }
}
