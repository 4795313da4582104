//! The table of a run: ours, the best peer, the ratio, and every peer's time.

use super::lines::Line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name our own lines carry.
const OURS: &str = "kiln";

/// Above this share of foreign processor time a figure is marked.
const BUSY: f64 = 0.06;

/// One row a workload, in the order in which they ran. A figure taken on a busy machine is marked with `*`.
pub fn render(lines: &[Line]) -> String {
    let mut order = Vec::new();
    let mut rows: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        if !order.contains(&line.workload.as_str()) {
            order.push(&line.workload);
        }
        rows.entry(&line.workload).or_default().push(line);
    }
    let mut text = String::from("| workload | kiln | best peer | ratio | peers |\n|---|---|---|---|---|\n");
    for workload in order {
        let row = &rows[workload];
        let ours = row.iter().find(|line| line.framework == OURS);
        let mut peers: Vec<&&Line> = row.iter().filter(|line| line.framework != OURS).collect();
        peers.sort_by(|a, b| a.median.total_cmp(&b.median));
        let best = peers.first();
        let ratio = match (ours, best) {
            (Some(ours), Some(best)) => format!("{:.2}", ours.median / best.median),
            _ => String::new(),
        };
        let others: Vec<String> = peers.iter().map(|line| format!("{} {}", line.framework, shown(line))).collect();
        let _ = writeln!(
            text,
            "| {workload} | {} | {} | {ratio} | {} |",
            ours.map_or(String::new(), |line| shown(line)),
            best.map_or(String::new(), |line| format!("{} {}", line.framework, shown(line))),
            others.join(", "),
        );
    }
    if lines.iter().any(|line| line.foreign > BUSY) {
        let _ = writeln!(text, "\n`*`: other processes used more than {:.0} % of the cores meanwhile.", BUSY * 100.0);
    }
    text
}

/// A time with three digits and a fitting unit.
fn shown(line: &Line) -> String {
    let mark = if line.foreign > BUSY { "*" } else { "" };
    let (value, unit) = match line.median {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    let share = line.share.map_or(String::new(), |share| format!(" ({:.1} % of the step)", share * 100.0));
    format!("{value:.digits$} {unit}{mark}{share}")
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::bench::lines::Line;

    fn line(framework: &str, median: f64, foreign: f64) -> Line {
        Line { framework: framework.into(), workload: "w".into(), median, share: None, foreign, text: String::new() }
    }

    #[test]
    fn the_ratio_is_to_the_best_peer() {
        let text = render(&[line("kiln", 1.5e-3, 0.0), line("slow", 4e-3, 0.0), line("fast", 1e-3, 0.0)]);
        assert!(text.contains("| w | 1.50 ms | fast 1.00 ms | 1.50 | fast 1.00 ms, slow 4.00 ms |"), "{text}");
    }

    #[test]
    fn a_part_shows_its_share() {
        let part = Line { share: Some(0.0314), ..line("kiln", 2e-6, 0.0) };
        assert!(render(&[part]).contains("| 2.00 us (3.1 % of the step) |"));
    }

    #[test]
    fn a_busy_machine_is_marked() {
        assert!(render(&[line("kiln", 2e-6, 0.5)]).contains("2.00 us*"));
    }
}
