//! The steps of a section: which values it computes, where they are held, and for how long.
use super::*;

impl Builder<'_> {
    /// The slot and form of an operand in a section.
    pub(super) fn operand(&self, section: Section, x: ValueId) -> Result<(Slot, Form), String> {
        let k = x.index();
        if let Some(slot) = self.uniform[k] {
            return Ok((slot, Form::Scalar));
        }
        match section {
            Section::Kept => self.kept[k].map(|slot| (slot, Form::Vector)),
            Section::Full => self.full[k],
        }
        .ok_or_else(|| "an operand is not known in its section".to_string())
    }

    /// Emits value `k` into `dst`.
    pub(super) fn emit(&mut self, section: Section, k: usize, dst: Slot, form: Form, steps: &mut Vec<Step>) -> Result<(), String> {
        let expr = self.expr;
        let value = &expr.values[k];
        match &value.inst {
            Inst::Load(n) => {
                let load = &expr.loads[*n as usize];
                let spec = &self.bufs[load.buf.index()];
                let plan = LoadPlan {
                    ahead: self.next_block(&load.index, spec),
                    buf: load.buf,
                    access: self.access(&load.index),
                    bounds: self.bounds(&load.bounds),
                    moves: moves_of(spec.dtype, self.simd),
                    stored: spec.dtype.size() as u8,
                    held: Kind::of(spec.dtype).size() as u8,
                    // A loaded value that is stored as it is could be overwritten by another store before its turn.
                    copied: (expr.stores.len() > 1 && expr.stores.iter().any(|s| s.value.index() == k))
                        || section == Section::Kept
                        || self.plan.homes[dst as usize].motion != Motion::Fixed,
                    len: spec.len,
                };
                self.plan.loads.push(plan);
                steps.push(Step::Load { load: self.plan.loads.len() as u16 - 1, dst, one: form == Form::Scalar });
            }
            Inst::Index(affine) => {
                let access = self.access(affine);
                let run = random::count(self.simd);
                if value.dtype == DType::I64 {
                    steps.push(Step::Count { run, access, dst });
                } else {
                    let bytes = 8 * self.tile_elements().max(self.plan.geometry.lanes);
                    let raw = self.slot(bytes);
                    steps.push(Step::Count { run, access, dst: raw });
                    steps.push(Step::Map { run: cast::select(Kind::I64, value.dtype, self.simd), dst, sources: [raw; 3], one: form == Form::Scalar });
                }
            }
            Inst::Random(kind, affine, seed) => {
                let access = self.access(affine);
                let (seed, _) = self.operand(section, *seed)?;
                let run = random::select(*kind, value.dtype, self.simd)
                    .ok_or_else(|| alloc::format!("random numbers are not defined on {}", value.dtype))?;
                let words = random::words(self.simd);
                steps.push(Step::Random { run, words, access, seed, dst, step_bytes: Kind::of(value.dtype).size() as u8 });
            }
            Inst::Inside(bounds) => {
                let bounds = self.bounds(bounds);
                self.plan.bounds.push(bounds);
                steps.push(Step::Inside { bounds: self.plan.bounds.len() as u16 - 1, dst });
            }
            Inst::Acc => steps.push(Step::Acc { dst, size: Kind::of(value.dtype).size() as u8 }),
            Inst::Op(..) | Inst::Cast(_) => {
                let pair = if section == Section::Full { self.pairs[k].as_ref().map(|(pair, _)| *pair) } else { None };
                let operands = self.operands(k);
                let mut sources = [dst; 3];
                let mut scalars = 0;
                let allowed = match &value.inst {
                    Inst::Op(..) if pair.is_some() => 6,
                    Inst::Op(op, xs) => xs.last().map_or(0, |x| elementwise::scalar_operands(*op, kind_of(expr, *x))),
                    _ => 0,
                };
                let mut forms: SmallVec<[Form; 3]> = SmallVec::new();
                for (n, &x) in operands.iter().enumerate() {
                    let (slot, form) = self.operand(section, x)?;
                    sources[n] = slot;
                    forms.push(form);
                }
                let mut spread = Vec::new();
                if form == Form::Vector {
                    for (n, &x) in operands.iter().enumerate() {
                        let only_scalars = n == 0 && forms.iter().all(|&f| f == Form::Scalar);
                        if forms[n] == Form::Vector {
                            continue;
                        }
                        if allowed & (1 << n) != 0 && !only_scalars {
                            scalars |= 1 << n;
                            continue;
                        }
                        let size = kind_of(expr, x).size();
                        let offset = self.register(size);
                        let slot = self.plain_slot(offset);
                        steps.push(Step::Splat { src: sources[n], dst: slot, size: size as u8 });
                        sources[n] = slot;
                        spread.push((size, offset));
                    }
                }
                match pair {
                    Some(pair) => {
                        let run = pair.select(scalars, self.simd).ok_or("a pair without a loop")?;
                        steps.push(Step::Map { run, dst, sources, one: form == Form::Scalar });
                    }
                    None => self.compute(k, dst, sources, scalars, form == Form::Scalar, steps)?,
                }
                spread.into_iter().for_each(|(size, offset)| self.release(size, offset));
            }
            Inst::Const(_) | Inst::Arg(_) | Inst::Reduce(..) => return Err("a value in the wrong section".to_string()),
        }
        Ok(())
    }

    /// Whether a value of a tile is one element for the whole tile.
    pub(super) fn form_of(&self, k: usize) -> Form {
        let geometry = &self.plan.geometry;
        let still = |affine: &Affine| {
            let fixed = |a: usize| geometry.coefficient(&affine.coeffs, a, self.fused_kept) == 0;
            (fixed(geometry.inner) || geometry.columns == 1) && (fixed(geometry.outer) || geometry.rows == 1)
        };
        // Tiles of a prologue or epilogue may be of any size.
        let still = |affine: &Affine| {
            still(affine)
                && (self.role == Role::Kernel
                    || [geometry.inner, geometry.outer].iter().all(|&a| geometry.coefficient(&affine.coeffs, a, self.fused_kept) == 0))
        };
        let scalar = match &self.expr.values[k].inst {
            Inst::Load(n) => {
                let load = &self.expr.loads[*n as usize];
                still(&load.index) && load.bounds.iter().all(|b| still(&b.index))
            }
            Inst::Op(..) | Inst::Cast(_) => {
                let known = |x: &ValueId| self.uniform[x.index()].is_some() || matches!(self.full[x.index()], Some((_, Form::Scalar)));
                self.operands(k).iter().all(known)
            }
            Inst::Index(_) | Inst::Random(..) | Inst::Inside(_) | Inst::Acc | Inst::Arg(_) | Inst::Const(_) | Inst::Reduce(..) => false,
        };
        if scalar { Form::Scalar } else { Form::Vector }
    }

    /// A section over tiles: computes what the reductions, stores and the result `out` need and no earlier pass has left.
    pub(super) fn section(
        &mut self,
        phase: u32,
        reduces: &[usize],
        stores: &[usize],
        out: Option<ValueId>,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let expr = self.expr;
        let count = expr.values.len();
        let along = self.plan.geometry.mode == Mode::Along;
        // Find what is needed, users before operands.
        let mut needed = vec![false; count];
        let mut last_use = vec![0usize; count];
        let mut want = |k: usize, by: usize, needed: &mut Vec<bool>| {
            needed[k] = true;
            last_use[k] = last_use[k].max(by);
        };
        for &r in reduces {
            let last = self.reduce_operands(r).iter().map(|x| x.index()).max().unwrap_or(0);
            self.reduce_operands(r).iter().for_each(|x| want(x.index(), last, &mut needed));
        }
        stores.iter().for_each(|&n| want(expr.stores[n].value.index(), count, &mut needed));
        out.iter().for_each(|x| want(x.index(), count, &mut needed));
        for k in (0..count).rev() {
            let known = self.uniform[k].is_some() || self.full[k].is_some();
            if needed[k] && !known {
                self.operands(k).iter().for_each(|x| want(x.index(), k, &mut needed));
            }
        }
        // Values that a later pass needs too are kept for the whole row, if it is short enough.
        let keep: Vec<bool> = (0..count).map(|k| needed[k] && self.is_kept_for_later(k, phase)).collect();

        let placed: Vec<usize> = stores.iter().copied().filter(|&n| self.can_place(n, &expr.stores[n], stores)).collect();
        let mut registers: Vec<Option<(usize, usize)>> = vec![None; count];
        let mut shown = Vec::new();
        for k in 0..count {
            let known = self.uniform[k].is_some() || self.full[k].is_some();
            if needed[k] && !known {
                let size = Kind::of(expr.values[k].dtype).size();
                let form = self.form_of(k);
                let slot = if form == Form::Scalar {
                    self.slot(8)
                } else if keep[k] {
                    let points = self.plan.geometry.row * if along { self.plan.geometry.lanes } else { self.plan.geometry.columns };
                    // A last tile may be shorter than the others but never longer.
                    let offset = self.memory(size * points);
                    self.slot_at(offset, Motion::Row(size as u8))
                } else {
                    let offset = self.register(size);
                    registers[k] = Some((size, offset));
                    // A load may point elsewhere, and so may a value computed in its destination.
                    let moves = matches!(expr.values[k].inst, Inst::Load(_)) || placed.iter().any(|&n| expr.stores[n].value.index() == k);
                    if moves { self.slot_at(offset, Motion::Fixed) } else { self.plain_slot(offset) }
                };
                if let Some(&n) = placed.iter().find(|&&n| expr.stores[n].value.index() == k)
                    && form == Form::Vector
                    && !keep[k]
                {
                    let store = self.plan_store(n);
                    steps.push(Step::Place { store, slot });
                }
                self.emit(Section::Full, k, slot, form, steps)?;
                self.full[k] = Some((slot, form));
                if !keep[k] || form == Form::Scalar {
                    shown.push(k);
                }
                self.free_operands(k, &last_use, &mut registers);
            }
            for &r in reduces {
                let operands = self.reduce_operands(r);
                if operands.iter().map(|x| x.index()).max() != Some(k) {
                    continue;
                }
                let reduce = self.plan.reduces.iter().position(|p| Some(p.result) == self.kept[r]).ok_or("an unplanned reduction")? as u16;
                let (src, spread) = self.as_vector(operands[0], steps)?;
                let mut spreads = [spread, None];
                let step = match self.products[r] {
                    Some(Products::Of([_, other])) => {
                        let (other, spread) = self.as_vector(other, steps)?;
                        spreads[1] = spread;
                        Step::Products { run: reduction::products_along(self.simd), reduce, a: src, b: other }
                    }
                    Some(Products::Deviations([_, middle])) => {
                        let (middle, _) = self.operand(Section::Full, middle)?;
                        Step::Products { run: reduction::deviations_along(self.simd), reduce, a: src, b: middle }
                    }
                    None if along => Step::Along { reduce, src },
                    None => Step::Across { reduce, src },
                };
                steps.push(step);
                spreads.into_iter().flatten().for_each(|(size, offset)| self.release(size, offset));
            }
            // The last users of a value may be reductions.
            if !reduces.is_empty() {
                for x in 0..=k {
                    if last_use[x] == k
                        && let Some((size, offset)) = registers[x].take()
                    {
                        self.release(size, offset);
                    }
                }
            }
        }
        // Loaded values first: see `LoadPlan::copied`.
        let mut order: Vec<usize> = stores.to_vec();
        order.sort_by_key(|&n| !matches!(expr.value(expr.stores[n].value).inst, Inst::Load(_)));
        for n in order {
            let (src, spread) = self.as_vector(expr.stores[n].value, steps)?;
            let existing = placed.contains(&n).then(|| {
                self.plan.stores.iter().rposition(|s| s.buf == expr.stores[n].buf && self.plan.accesses[s.access as usize] == expr.stores[n].index)
            });
            let store = match existing.flatten() {
                Some(store) => store as u16,
                None => self.plan_store(n),
            };
            steps.push(Step::Store { store, src });
            spread.into_iter().for_each(|(size, offset)| self.release(size, offset));
        }
        if let Some(x) = out {
            let (src, _) = self.as_vector(x, steps)?;
            steps.push(Step::Out { src, size: kind_of(expr, x).size() as u8 });
        }
        for register in registers.iter_mut() {
            if let Some((size, offset)) = register.take() {
                self.release(size, offset);
            }
        }
        // What is not kept for the row is unknown to the next pass.
        shown.into_iter().for_each(|k| self.full[k] = None);
        Ok(())
    }

    pub(super) fn free_operands(&mut self, k: usize, last_use: &[usize], registers: &mut [Option<(usize, usize)>]) {
        for x in self.operands(k) {
            if last_use[x.index()] == k
                && let Some((size, offset)) = registers[x.index()].take()
            {
                self.release(size, offset);
            }
        }
    }

    /// What reduction `r` joins: a value, or two that it combines itself.
    pub(super) fn reduce_operands(&self, r: usize) -> Operands {
        match (&self.products[r], &self.expr.values[r].inst) {
            (Some(Products::Of(factors) | Products::Deviations(factors)), _) => factors.iter().copied().collect(),
            (None, Inst::Reduce(_, x)) => core::iter::once(*x).collect(),
            (None, _) => Operands::new(),
        }
    }

    /// A value as a vector: itself, or spread over a register (which the caller gives back).
    pub(super) fn as_vector(&mut self, x: ValueId, steps: &mut Vec<Step>) -> Result<(Slot, Option<(usize, usize)>), String> {
        let (slot, form) = self.operand(Section::Full, x)?;
        if form == Form::Vector {
            return Ok((slot, None));
        }
        let size = kind_of(self.expr, x).size();
        let offset = self.register(size);
        let spread = self.plain_slot(offset);
        steps.push(Step::Splat { src: slot, dst: spread, size: size as u8 });
        Ok((spread, Some((size, offset))))
    }

    /// Whether a value computed in pass `phase` is used in a later pass and worth keeping for the whole row.
    pub(super) fn is_kept_for_later(&self, k: usize, phase: u32) -> bool {
        if self.is_map() || self.levels[k] != Level::Full || self.phases[k] > phase {
            return false;
        }
        let expr = self.expr;
        let last_reduce = |r: usize| matches!(expr.values[r].inst, Inst::Reduce(..));
        let used_later = (0..expr.values.len()).any(|user| {
            let operands = if last_reduce(user) { self.reduce_operands(user) } else { self.operands(user) };
            let uses = operands.iter().any(|x| x.index() == k);
            // A reduction of phase p + 1 reads its operand in pass p.
            uses && if last_reduce(user) { self.phases[user] > phase + 1 } else { self.phases[user] > phase }
        }) || expr.stores.iter().any(|s| s.value.index() == k && self.is_full_store(s) && self.final_pass() > phase);
        if !used_later {
            return false;
        }
        // Reading in order is as good as keeping, and so is a simple op on what is read.
        if self.is_read_in_order(k) || self.is_cheap(k) {
            return false;
        }
        let geometry = &self.plan.geometry;
        let points = geometry.row * if geometry.mode == Mode::Along { geometry.lanes } else { geometry.columns };
        points * Kind::of(expr.values[k].dtype).size() <= CACHE_BYTES
    }

    /// The pass in which values are stored for every reduced point.
    pub(super) fn final_pass(&self) -> u32 {
        let reduces =
            self.expr.values.iter().zip(&self.phases).filter(|(v, _)| matches!(v.inst, Inst::Reduce(..))).map(|(_, &p)| p).max().unwrap_or(0);
        let stored = self.expr.stores.iter().filter(|s| self.is_full_store(s)).map(|s| self.phases[s.value.index()] + 1).max().unwrap_or(0);
        reduces.max(stored).saturating_sub(1)
    }

    /// Whether a store's value may be computed right in its destination.
    pub(super) fn can_place(&self, n: usize, store: &kiln_ir::Store, stores: &[usize]) -> bool {
        let expr = self.expr;
        let spec = &self.bufs[store.buf.index()];
        let once = stores.iter().all(|&m| m == n || expr.stores[m].value != store.value);
        let computed = !matches!(expr.value(store.value).inst, Inst::Load(_) | Inst::Acc);
        let geometry = &self.plan.geometry;
        let stride = geometry.coefficient(&store.index.coeffs, geometry.inner, self.fused_kept);
        once && computed
            && stride == 1
            && spec.bytes() < STREAM_BYTES
            && moves_of(spec.dtype, self.simd).native
            && self.level(store.value) == Level::Full
    }
}
