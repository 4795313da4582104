//! Draws points and a curve in the terminal.

/// Width of the drawing in characters.
pub const COLUMNS: usize = 78;

const ROWS: usize = 22;

/// The drawing: points as `·`, the curve as `█`, both scaled to the range of all of them.
pub fn draw(points: &[(f32, f32)], curve: &[(f32, f32)]) -> String {
    let all = || points.iter().chain(curve);
    let range = |pick: fn(&(f32, f32)) -> f32| all().map(pick).fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let (x, y) = (range(|p| p.0), range(|p| p.1));
    let cell = |v: f32, (low, high): (f32, f32), cells: usize| (((v - low) / (high - low).max(f32::EPSILON)) * (cells - 1) as f32).round() as usize;
    let mut grid = vec![[' '; COLUMNS]; ROWS];
    for (marks, mark) in [(points, '·'), (curve, '█')] {
        for &(px, py) in marks {
            grid[ROWS - 1 - cell(py, y, ROWS)][cell(px, x, COLUMNS)] = mark;
        }
    }
    grid.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
}
