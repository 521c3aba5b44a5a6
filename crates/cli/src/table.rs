//! Owns columns of text for a terminal. Pure.

use crate::width;

/// How a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The rows in columns two spaces apart, each line with its line break and no spaces at its end.
pub(crate) fn columns(align: &[Align], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| width::width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, align), width) in row.iter().zip(align).zip(&widths) {
            let gap = " ".repeat(width - width::width(cell));
            match align {
                Align::Left => line.extend([cell, &gap, "  "]),
                Align::Right => line.extend([&gap, cell, "  "]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_under_each_other() {
        let rows = [["id", "size"], ["a", "1 kB"], ["höher", "22 kB"], ["日本", "3 kB"]]
            .map(|row| row.map(String::from).to_vec());
        let text = columns(&[Align::Left, Align::Right], &rows);
        assert_eq!(text, "id      size\na       1 kB\nhöher  22 kB\n日本    3 kB\n");
    }
}
