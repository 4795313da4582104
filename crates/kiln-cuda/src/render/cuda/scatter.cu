// Scatter. Values meet their destination in row-major order unless order cannot matter.
typedef Arith<T>::type W;

__device__ __forceinline__ W meet(W old, W v) {
#if OP == 0
    return v;
#elif OP == 1
    return Number<W>::add(old, v);
#elif OP == 2
    return Number<W>::mul(old, v);
#elif OP == 3
    return Number<W>::larger(old, v);
#else
    return Number<W>::smaller(old, v);
#endif
}

// The start: base or zeros, in the type that values are combined in.
#ifdef ENTRY_start
extern "C" __global__ void __launch_bounds__(256) start(const T* base, S* to) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUT_LEN; at += (count)gridDim.x * 256) {
        to[at] = narrow<S>(HAS_BASE ? widen<T>(base[at]) : Number<W>::zero());
    }
}
#endif

// The end of a scatter that combined in a wider type.
#ifdef ENTRY_finish
extern "C" __global__ void __launch_bounds__(256) finish(const S* from, T* out) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUT_LEN; at += (count)gridDim.x * 256) {
        out[at] = narrow<T>(from[at]);
    }
}
#endif

// One thread a line: values are applied one after the other.
#ifdef ENTRY_lines
extern "C" __global__ void __launch_bounds__(256) lines(const I* __restrict__ index, const T* __restrict__ values, S* __restrict__ to, const u64* args, int* fault) {
    const ix index_origin = INDEX_ORIGIN, values_origin = VALUES_ORIGIN;
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUTER * INNER; at += (count)gridDim.x * 256) {
        ix which = index_origin, from = values_origin;
        const count o = at / INNER, c = at - o * INNER;
        count rest = o;
        OUTER_WALK
        rest = c;
        INNER_WALK
        S* line = to + (ix)o * ((ix)ROWS * INNER) + (ix)c;
        for (count k = 0; k < (count)GIVEN; k++) {
            const i64 i = (i64)index[which + (ix)k * INDEX_STEP];
            if ((u64)i >= (u64)ROWS) {
                report(fault, 2, AXIS, i, ROWS);
                continue;
            }
            S* old = line + (ix)i * INNER;
            *old = narrow<S>(meet(widen<S>(*old), widen<T>(values[from + (ix)k * VALUES_STEP])));
        }
    }
}
#endif

// One thread a value, for operations whose order cannot matter.
#ifdef ENTRY_atomics
template <int SIZE> struct Word {};
template <> struct Word<4> {
    static __device__ __forceinline__ void update(T* to, W v) {
        u32* word = (u32*)to;
        u32 seen = *word, old;
        do {
            old = seen;
            union {
                u32 word;
                T value;
            } now;
            now.word = old;
            now.value = narrow<T>(meet(widen<T>(now.value), v));
            if (now.word == old) return;
            seen = atomicCAS(word, old, now.word);
        } while (seen != old);
    }
};
template <> struct Word<8> {
    static __device__ __forceinline__ void update(T* to, W v) {
        u64* word = (u64*)to;
        u64 seen = *word, old;
        do {
            old = seen;
            union {
                u64 word;
                T value;
            } now;
            now.word = old;
            now.value = narrow<T>(meet(widen<T>(now.value), v));
            if (now.word == old) return;
            seen = atomicCAS(word, old, now.word);
        } while (seen != old);
    }
};
// Short elements: compare and swap of the word around them.
template <int SIZE> struct Part {
    static __device__ __forceinline__ void update(T* to, W v) {
        const u64 address = (u64)to;
        u32* word = (u32*)(address & ~(u64)3);
        const u32 shift = (u32)(address & 3) * 8, mask = (SIZE == 1 ? 0xffu : 0xffffu) << shift;
        u32 seen = *word, old;
        do {
            old = seen;
            union {
                u16 word;
                T value;
            } now;
            now.word = (u16)(old >> shift);
            now.value = narrow<T>(meet(widen<T>(now.value), v));
            const u32 wanted = (old & ~mask) | ((u32)now.word << shift & mask);
            if (wanted == old) return;
            seen = atomicCAS(word, old, wanted);
        } while (seen != old);
    }
};
template <> struct Word<2> : Part<2> {};
template <> struct Word<1> : Part<1> {};

extern "C" __global__ void __launch_bounds__(256) atomics(const I* __restrict__ index, const T* __restrict__ values, T* to, const u64* args, int* fault) {
    const ix index_origin = INDEX_ORIGIN, values_origin = VALUES_ORIGIN;
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUTER * GIVEN * INNER; at += (count)gridDim.x * 256) {
        ix which = index_origin, from = values_origin;
        const count row = at / INNER, c = at - row * INNER, o = row / GIVEN, k = row - o * GIVEN;
        count rest = o;
        OUTER_WALK
        rest = c;
        INNER_WALK
        const i64 i = (i64)index[which + (ix)k * INDEX_STEP];
        if ((u64)i >= (u64)ROWS) {
            report(fault, 2, AXIS, i, ROWS);
            continue;
        }
        Word<sizeof(T)>::update(to + ((ix)o * ROWS + (ix)i) * INNER + (ix)c, widen<T>(values[from + (ix)k * VALUES_STEP]));
    }
}
#endif

// A block owns PART_ROWS rows and PART_COLS columns of a line's result: it reads all of the line's indices, keeps those of its rows in order, and applies
// them to sums in shared memory. COLS is 1 where the index differs from column to column; columns are then lines of their own.
#ifdef ENTRY_owners
#if SEGMENTS > 1
typedef W Sum;
#else
typedef T Sum;
#endif
extern "C" __global__ void __launch_bounds__(256) owners(const I* __restrict__ index, const T* __restrict__ values, const T* base, Sum* out, const u64* args, int* fault) {
    extern __shared__ uint4 shared_bytes[];
    W* sums = (W*)shared_bytes;
    u32* found = (u32*)(sums + ((PART_ROWS * PART_COLS + 3) & ~3));
    u32* found_row = found + 1024;
    u32* totals = found_row + 1024;
    const u32 t = threadIdx.x;
    count block = blockIdx.x;
    const count segment = block % SEGMENTS;
    block /= SEGMENTS;
    const count part = block % ROW_PARTS;
    block /= ROW_PARTS;
    const count col_part = block % COL_PARTS, line = block / COL_PARTS;
    const count o = line / LINE_COLS, c0 = line % LINE_COLS;
    const count row0 = part * PART_ROWS, col0 = col_part * PART_COLS;
    const u32 rows = (u32)(ROWS - row0 < PART_ROWS ? ROWS - row0 : PART_ROWS), cols = (u32)(COLS - col0 < PART_COLS ? COLS - col0 : PART_COLS);
    ix which = INDEX_ORIGIN, from = VALUES_ORIGIN;
    count rest = o;
    OUTER_WALK
    if (LINE_COLS > 1) {
        rest = c0;
        INNER_WALK
    }
    const ix place = ((ix)o * ROWS + (ix)row0) * INNER + (ix)c0 + (ix)col0;
    for (u32 at = t; at < rows * cols; at += 256) {
        const u32 r = at / cols, c = at - r * cols;
        sums[r * PART_COLS + c] = HAS_BASE && SEGMENTS == 1 ? widen<T>(base[place + (ix)r * INNER + (ix)c]) : Number<W>::zero();
    }
    // Threads that share a row of sums; with few columns each group of threads owns every GROUPS-th row.
    const u32 group = t / LANES, lane = t % LANES;
    const count end = min((count)(segment + 1) * SEGMENT, (count)GIVEN);
    for (count k0 = segment * SEGMENT; k0 < end; k0 += 1024) {
        u32 mine[4], rows_of[4], n = 0;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            const count k = k0 + t * 4 + j;
            if (k < end) {
                const i64 i = (i64)index[which + (ix)k * INDEX_STEP];
                if ((u64)i >= (u64)ROWS) report(fault, 2, AXIS, i, ROWS);
                const u64 r = (u64)i - (u64)row0;
                if (r < rows) {
                    mine[n] = (u32)(k - k0);
                    rows_of[n] = (u32)r;
                    n++;
                }
            }
        }
        u32 before = n;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, before, d);
            if ((t & 31) >= d) before += other;
        }
        if ((t & 31) == 31) totals[t / 32] = before;
        __syncthreads();
        u32 all = 0, at = before - n;
#pragma unroll
        for (u32 w = 0; w < 8; w++) {
            if (w < t / 32) at += totals[w];
            all += totals[w];
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (j < n) {
                found[at + j] = mine[j];
                found_row[at + j] = rows_of[j];
            }
        }
        __syncthreads();
        // Many matches at a time: their values are read before the first is applied.
        for (u32 f0 = 0; f0 < all; f0 += 24) {
            const u32 some = all - f0 < 24 ? all - f0 : 24;
            for (u32 c = lane; c < cols; c += LANES) {
                ix from_column = from;
                if (COLS > 1) {
                    count rest = col0 + c;
                    ix which = 0, from = 0;
                    INNER_WALK
                    from_column += from;
                    (void)which;
                }
                W v[24];
#pragma unroll
                for (u32 j = 0; j < 24; j++)
                    if (j < some && found_row[f0 + j] % GROUPS == group) v[j] = widen<T>(values[from_column + (ix)(k0 + found[f0 + j]) * VALUES_STEP]);
#pragma unroll
                for (u32 j = 0; j < 24; j++)
                    if (j < some && found_row[f0 + j] % GROUPS == group) {
                        W* old = sums + found_row[f0 + j] * PART_COLS + c;
                        *old = meet(*old, v[j]);
                    }
            }
        }
        __syncthreads();
    }
    for (u32 at = t; at < rows * cols; at += 256) {
        const u32 r = at / cols, c = at - r * cols;
        out[(ix)segment * OUT_LEN + place + (ix)r * INNER + (ix)c] = narrow<Sum>(sums[r * PART_COLS + c]);
    }
}
#endif

// The sums of all segments, in order, on the base.
#ifdef ENTRY_segments
extern "C" __global__ void __launch_bounds__(256) segments(const T* base, const W* __restrict__ parts, T* out) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUT_LEN; at += (count)gridDim.x * 256) {
        W sum = HAS_BASE ? widen<T>(base[at]) : Number<W>::zero();
#pragma unroll 4
        for (count s = 0; s < SEGMENTS; s++) sum = meet(sum, parts[(ix)s * OUT_LEN + (ix)at]);
        out[at] = narrow<T>(sum);
    }
}
#endif
