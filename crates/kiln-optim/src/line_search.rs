//! The search for a step length along a direction.

use serde::{Deserialize, Serialize};

/// How [`LBFGS`](crate::LBFGS) finds the length of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineSearchFn {
    /// The learning rate.
    #[default]
    None,
    /// A length that satisfies the strong Wolfe conditions.
    StrongWolfe,
}

/// A point along the direction.
#[derive(Clone)]
pub(crate) struct Point<G> {
    /// The length of the step.
    pub(crate) t: f64,
    /// The loss there.
    pub(crate) loss: f64,
    /// The gradient there.
    pub(crate) gradient: G,
    /// The slope of the loss along the direction there.
    pub(crate) slope: f64,
}

const SUFFICIENT_DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
const MAX_EVALUATIONS: usize = 25;

/// Finds a step length that satisfies the strong Wolfe conditions, starting at `t`.
///
/// Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6, with cubic interpolation. `evaluate` gives the point
/// at a step length; `origin` is the point at zero, `reach` the greatest element of the direction. Returns the point and
/// the number of evaluations.
pub(crate) fn strong_wolfe<G: Clone>(
    origin: Point<G>,
    mut t: f64,
    reach: f64,
    tolerance_change: f64,
    mut evaluate: impl FnMut(f64) -> Point<G>,
) -> (Point<G>, usize) {
    let (loss, slope) = (origin.loss, origin.slope);
    let decreases = |point: &Point<G>| point.loss <= loss + SUFFICIENT_DECREASE * point.t * slope;
    let flattens = |point: &Point<G>| point.slope.abs() <= -CURVATURE * slope;
    let mut evaluations = 1;
    let mut previous = origin;
    let mut point = evaluate(t);
    // Bracket: go on until an interval must hold a good point.
    let mut bracket = loop {
        if !decreases(&point) || (evaluations > 1 && point.loss >= previous.loss) {
            break [previous, point];
        }
        if flattens(&point) {
            return (point, evaluations);
        }
        if point.slope >= 0.0 {
            break [previous, point];
        }
        if evaluations >= MAX_EVALUATIONS {
            return (point, evaluations);
        }
        let least = t + 0.01 * (t - previous.t);
        let most = t * 10.0;
        let next = cubic_minimum(&previous, &point, least, most);
        previous = point;
        t = next;
        point = evaluate(t);
        evaluations += 1;
    };
    // Zoom: shrink the interval around the better end.
    let mut low = usize::from(bracket[0].loss > bracket[1].loss);
    let mut stuck = false;
    while evaluations < MAX_EVALUATIONS {
        let width = (bracket[1].t - bracket[0].t).abs();
        if width * reach < tolerance_change {
            break;
        }
        let (start, end) = (bracket[0].t.min(bracket[1].t), bracket[0].t.max(bracket[1].t));
        t = cubic_minimum(&bracket[0], &bracket[1], start, end);
        // A point too near an end makes no progress: go a tenth inside, at the second time in a row.
        let margin = 0.1 * width;
        if (end - t).min(t - start) < margin {
            if stuck || t >= end || t <= start {
                t = if (t - end).abs() < (t - start).abs() { end - margin } else { start + margin };
                stuck = false;
            } else {
                stuck = true;
            }
        } else {
            stuck = false;
        }
        let point = evaluate(t);
        evaluations += 1;
        if !decreases(&point) || point.loss >= bracket[low].loss {
            bracket[1 - low] = point;
            low = usize::from(bracket[0].loss > bracket[1].loss);
        } else {
            if flattens(&point) {
                return (point, evaluations);
            }
            if point.slope * (bracket[1 - low].t - bracket[low].t) >= 0.0 {
                bracket[1 - low] = bracket[low].clone();
            }
            bracket[low] = point;
        }
    }
    let [first, second] = bracket;
    (if low == 0 { first } else { second }, evaluations)
}

/// The minimum between `least` and `most` of the cubic through two points with their slopes, or the middle if it has none.
fn cubic_minimum<G>(a: &Point<G>, b: &Point<G>, least: f64, most: f64) -> f64 {
    let (a, b) = if a.t <= b.t { (a, b) } else { (b, a) };
    let chord = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.t - b.t);
    let square = chord * chord - a.slope * b.slope;
    if square < 0.0 {
        return f64::midpoint(least, most);
    }
    let root = libm::sqrt(square);
    let position = b.t - (b.t - a.t) * ((b.slope + root - chord) / (b.slope - a.slope + 2.0 * root));
    if position.is_nan() {
        return f64::midpoint(least, most);
    }
    position.max(least).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(f64) -> (f64, f64)) -> impl FnMut(f64) -> Point<()> {
        move |t| {
            let (loss, slope) = f(t);
            Point { t, loss, gradient: (), slope }
        }
    }

    #[test]
    fn the_found_point_satisfies_both_conditions() {
        // A quadratic, a quartic and a curve with a far minimum.
        let curves: [fn(f64) -> (f64, f64); 3] = [
            |t| ((t - 3.0) * (t - 3.0), 2.0 * (t - 3.0)),
            |t| (libm::pow(t - 0.2, 4.0), 4.0 * libm::pow(t - 0.2, 3.0)),
            |t| (-t / (t * t + 2.0), (t * t - 2.0) / libm::pow(t * t + 2.0, 2.0)),
        ];
        for curve in curves {
            for start in [0.01, 1.0, 20.0] {
                let origin = at(curve)(0.0);
                let (loss, slope) = (origin.loss, origin.slope);
                let (point, evaluations) = strong_wolfe(origin, start, 1.0, 1e-9, at(curve));
                assert!(evaluations <= MAX_EVALUATIONS);
                assert!(point.loss <= loss + SUFFICIENT_DECREASE * point.t * slope);
                assert!(point.slope.abs() <= -CURVATURE * slope, "start {start}");
            }
        }
    }

    #[test]
    fn the_minimum_of_a_cubic_is_exact() {
        // (t - 1)^2 (t + 2), with its minimum at 1.
        let curve = |t: f64| ((t - 1.0) * (t - 1.0) * (t + 2.0), 2.0 * (t - 1.0) * (t + 2.0) + (t - 1.0) * (t - 1.0));
        let mut point = at(curve);
        let (a, b) = (point(0.0), point(3.0));
        assert!((cubic_minimum(&a, &b, 0.0, 3.0) - 1.0).abs() < 1e-12);
    }
}
