//! Draws digits side by side in the terminal, two pixels a character.

use kiln::data::dataset::vision::MnistItem;

/// Digits in one row of the drawing.
const ACROSS: usize = 4;

/// The margin of an image that is always empty.
const MARGIN: usize = 4;

/// The images with what the model read below each.
pub fn draw(items: &[MnistItem], read: &[i64]) -> String {
    let mut text = String::new();
    for (items, read) in items.chunks(ACROSS).zip(read.chunks(ACROSS)) {
        for y in (MARGIN..28 - MARGIN).step_by(2) {
            for item in items {
                for x in MARGIN..28 - MARGIN {
                    let ink = |y: usize| item.image[y][x] > 100.0;
                    text.push(match (ink(y), ink(y + 1)) {
                        (true, true) => '█',
                        (true, false) => '▀',
                        (false, true) => '▄',
                        (false, false) => ' ',
                    });
                }
            }
            text.push('\n');
        }
        for (item, read) in items.iter().zip(read) {
            let note = if i64::from(item.label) == *read { format!("{read}") } else { format!("{read} (it is {})", item.label) };
            text.push_str(&format!("{note:^width$}", width = 28 - 2 * MARGIN));
        }
        text.push_str("\n\n");
    }
    text
}
