//! Ops that run as one loop with an operand that nobody else needs.
use super::*;

impl Builder<'_> {
    /// Finds ops that run as one loop with an operand that nobody else needs.
    pub(super) fn find_pairs(&mut self) {
        let expr = self.expr;
        if self.simd < Simd::Avx2 {
            return;
        }
        let mut uses = vec![0; expr.values.len()];
        expr.values.iter().for_each(|v| v.inst.operands(|x| uses[x.index()] += 1));
        expr.stores.iter().for_each(|s| uses[s.value.index()] += 1);
        if self.role == Role::Prologue
            && let Some(last) = uses.last_mut()
        {
            *last += 1;
        }
        for k in 0..expr.values.len() {
            let id = ValueId(k as u32);
            if let Inst::Reduce(kiln_ir::ReduceOp::Sum, x) = expr.values[k].inst
                && self.plan.geometry.mode == Mode::Along
                && uses[x.index()] == 1
                && kind_of(expr, x) == Kind::F32
                && self.pairs[x.index()].is_none()
                && let Inst::Op(Elementwise::Mul, factors) = &expr.value(x).inst
                && factors.iter().all(|&f| self.level(f) == Level::Full)
            {
                self.products[k] = Some(match (factors[0] == factors[1]).then(|| self.deviation(factors[0])).flatten() {
                    Some(of) if self.uses_in(self.phases[k] - 1, factors[0]) == 2 => Products::Deviations(of),
                    _ => Products::Of([factors[0], factors[1]]),
                });
                continue;
            }
            let Inst::Op(second, operands) = &expr.values[k].inst else { continue };
            if kind_of(expr, id) != Kind::F32 || self.level(id) != Level::Full {
                continue;
            }
            for (place, &u) in operands.iter().enumerate() {
                let Inst::Op(first, inner) = &expr.value(u).inst else { continue };
                let pair = Pair { first: *first, second: *second, reversed: place == 1 };
                // A cheap value is computed again in each pass that needs it.
                let once = uses[u.index()] == 1 || (self.is_cheap(u.index()) && self.uses_in(self.phases[k], u) == 1);
                let alone = once && self.pairs[u.index()].is_none() && operands.iter().filter(|&&x| x == u).count() == 1;
                if !alone || !pair.exists() || kind_of(expr, u) != Kind::F32 || self.level(u) != Level::Full {
                    continue;
                }
                let mut all: Operands = inner.iter().copied().collect();
                if self.level(all[0]) != Level::Full {
                    if !first.is_commutative() || all.len() < 2 || self.level(all[1]) != Level::Full {
                        continue;
                    }
                    all.swap(0, 1);
                }
                all.extend(operands.iter().copied().filter(|&x| x != u));
                self.pairs[k] = Some((pair, all));
                break;
            }
        }
    }

    /// How often pass `phase` uses a value.
    fn uses_in(&self, phase: u32, x: ValueId) -> usize {
        let expr = self.expr;
        let mut uses = expr.stores.iter().filter(|s| s.value == x && self.final_pass() == phase).count();
        for (user, value) in expr.values.iter().enumerate() {
            let pass = self.phases[user].saturating_sub(matches!(value.inst, Inst::Reduce(..)) as u32);
            if pass == phase {
                value.inst.operands(|o| uses += (o == x) as usize);
            }
        }
        uses
    }

    /// The value and the number of `x - m` where `m` is the same for the whole row.
    fn deviation(&self, id: ValueId) -> Option<[ValueId; 2]> {
        let Inst::Op(Elementwise::Sub, xs) = &self.expr.value(id).inst else { return None };
        (self.is_cheap(id.index()) && self.level(xs[0]) == Level::Full && self.levels[xs[1].index()] < Level::Full).then(|| [xs[0], xs[1]])
    }

    /// Whether computing value `k` of a row kernel again costs no more than reading it: a simple op on what is read in order and what is known for the row.
    pub(super) fn is_cheap(&self, k: usize) -> bool {
        let Inst::Op(Elementwise::Add | Elementwise::Sub | Elementwise::Mul, xs) = &self.expr.values[k].inst else { return false };
        self.simd >= Simd::Avx2
            && self.plan.geometry.mode == Mode::Along
            && kind_of(self.expr, ValueId(k as u32)) == Kind::F32
            && xs.iter().filter(|&&x| self.levels[x.index()] == Level::Full).count() == 1
            && xs.iter().all(|&x| self.levels[x.index()] < Level::Full || self.is_read_in_order(x.index()))
    }

    /// Whether a value is a contiguous part of a buffer in every tile.
    pub(super) fn is_read_in_order(&self, k: usize) -> bool {
        let Inst::Load(n) = &self.expr.values[k].inst else { return false };
        let geometry = &self.plan.geometry;
        let stride = geometry.coefficient(&self.expr.loads[*n as usize].index.coeffs, geometry.inner, self.fused_kept);
        matches!(stride, 0 | 1)
    }

    /// What value `k` is computed from in a tile.
    pub(super) fn operands(&self, k: usize) -> Operands {
        if let Some((_, operands)) = &self.pairs[k] {
            return operands.clone();
        }
        let mut operands = Operands::new();
        self.expr.values[k].inst.operands(|x| operands.push(x));
        operands
    }
}
