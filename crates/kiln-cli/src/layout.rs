//! How numbers and tables are shown in the terminal.

/// A number of bytes, such as `1.50 MiB`.
pub fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{scaled:.2} {unit}"),
    }
}

/// Appends a table whose first row is its head. Columns are as wide as their widest cell; the first `left` are aligned to the left.
pub fn table(rows: &[Vec<String>], left: usize, text: &mut String) {
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line.push_str("  ");
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
