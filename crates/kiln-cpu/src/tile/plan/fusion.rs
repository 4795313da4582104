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
                self.products[k] = Some([factors[0], factors[1]]);
                continue;
            }
            let Inst::Op(second, operands) = &expr.values[k].inst else { continue };
            if kind_of(expr, id) != Kind::F32 || self.level(id) != Level::Full {
                continue;
            }
            for (place, &u) in operands.iter().enumerate() {
                let Inst::Op(first, inner) = &expr.value(u).inst else { continue };
                let pair = Pair { first: *first, second: *second, reversed: place == 1 };
                let alone = uses[u.index()] == 1 && self.pairs[u.index()].is_none() && operands.iter().filter(|&&x| x == u).count() == 1;
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
