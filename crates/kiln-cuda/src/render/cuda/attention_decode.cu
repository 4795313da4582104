// Attention of few queries: blocks share out the keys, every key and value is read once for up to ROWS query rows, and the parts are put together after.
// Eight lanes take the product of a key, so that a warp handles four keys at a time.
#ifdef ENTRY_attention_decode
// VEC adjacent elements.
union Chunk {
#if VEC > 1
    uint4 raw;
#endif
    T e[VEC];
};
__device__ __forceinline__ void load(const T* p, Chunk& c) {
#if VEC == 1
    c.e[0] = *p;
#else
    c.raw = *(const uint4*)p;
#endif
}
// Narrow values take half of the lanes, so that a warp has two keys at a time.
#define V_ROWS (E <= 16 * E_VEC ? 2 : 1)
#define V_LANES (32 / V_ROWS)
// Keys of a warp whose loads are under way at once.
#define AHEAD (D_PARTS <= 2 ? 32 : D_PARTS <= 4 ? 16 : 8)

extern "C" __global__ void CLUSTERED __launch_bounds__(128) attention_decode(const T* q, const T* k, const T* v, const u8* mask, const T* bias, A* parts, T* out, A* lse, const u64* args) {
    // Scores of RUN keys a warp; then, to put warps together: a maximum, a sum and an output of each warp.
    extern __shared__ uint4 shared_bytes[];
    A* scores = (A*)shared_bytes;
    A* tops = scores + 4 * ROWS * RUN;
    A* outs = tops + 4 * ROWS * 2;
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, sub = lane % 8, quarter = lane / 8;
    i32 block = blockIdx.x;
    const i32 split = block % SPLITS;
    block /= SPLITS;
    const i32 rows_block = block % ROW_BLOCKS;
    block /= ROW_BLOCKS;
    const i32 g = block % GROUPS, b = block / GROUPS;
    const i32 row0 = rows_block * ROWS;
    const T* ks = k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H;
    const T* vs = v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H;
    const i32 first = split * SPLIT, last = min(first + SPLIT, (i32)KEYS);
    if (first + (i32)threadIdx.x < last) {
        fetch_ahead(ks + (i64)(first + (i32)threadIdx.x) * K_T);
        fetch_ahead(vs + (i64)(first + (i32)threadIdx.x) * V_T);
    }
    chain();
    // Row r is query t of head h; the rows of a block share the key head.
    A qs[ROWS][D_PARTS * VEC];
    i32 heads[ROWS], queries[ROWS];
#pragma unroll
    for (i32 r = 0; r < ROWS; r++) {
        const i32 row = min(row0 + r, ALL_ROWS - 1);
        heads[r] = g * (HEADS / GROUPS) + row / QUERIES;
        queries[r] = row % QUERIES;
        const T* p = q + Q_ORIGIN + (i64)b * Q_B + (i64)heads[r] * Q_H + (i64)queries[r] * Q_T;
#pragma unroll
        for (i32 i = 0; i < D_PARTS * VEC; i++) {
            const i32 d = (i / VEC * 8 + sub) * VEC + i % VEC;
            qs[r][i] = d < D ? widen<T>(p[(i64)d * Q_D]) : (A)0;
        }
    }
    A top[ROWS], sum[ROWS], acc[ROWS][E_PARTS * E_VEC];
#pragma unroll
    for (i32 r = 0; r < ROWS; r++) {
        top[r] = (A)NEGATIVE_INFINITY;
        sum[r] = 0;
#pragma unroll
        for (i32 e = 0; e < E_PARTS * E_VEC; e++) acc[r][e] = 0;
    }
    A* own = scores + warp * ROWS * RUN;
    // Warps take turns at runs of RUN keys: 32 or 64.
    for (i32 s0 = first + warp * RUN; s0 < last; s0 += 4 * RUN) {
#pragma unroll 1
        for (i32 n0 = 0; n0 < RUN; n0 += AHEAD) {
            Chunk x[AHEAD / 4][D_PARTS];
#pragma unroll
            for (i32 n = 0; n < AHEAD / 4; n++)
#pragma unroll
                for (i32 i = 0; i < D_PARTS; i++) {
                    const i32 s = min(s0 + n0 + n * 4 + quarter, last - 1), d = (i * 8 + sub) * VEC;
                    if (D_FULL || d < D) load(ks + (i64)s * K_T + (i64)d * K_D, x[n][i]);
                }
#pragma unroll
            for (i32 n = 0; n < AHEAD / 4; n++) {
                A dot[ROWS];
#pragma unroll
                for (i32 r = 0; r < ROWS; r++) dot[r] = 0;
#pragma unroll
                for (i32 i = 0; i < D_PARTS; i++) {
                    if (D_FULL || (i * 8 + sub) * VEC < D) {
#pragma unroll
                        for (i32 j = 0; j < VEC; j++) {
                            const A y = widen<T>(x[n][i].e[j]);
#pragma unroll
                            for (i32 r = 0; r < ROWS; r++) dot[r] += qs[r][i * VEC + j] * y;
                        }
                    }
                }
#pragma unroll
                for (i32 r = 0; r < ROWS; r++) {
                    dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 1);
                    dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 2);
                    dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 4);
                    if (sub == 0) own[r * RUN + n0 + n * 4 + quarter] = dot[r];
                }
            }
        }
        __syncwarp();
#pragma unroll
        for (i32 r = 0; r < ROWS; r++) {
            // A lane has one key or two: masks and biases are read here, where neighbours are.
            const Extras extras(mask, bias, b, heads[r], args);
            A slope;
            const A x = s0 + lane < last ? extras.score<A>(own[r * RUN + lane], queries[r], s0 + lane, slope) : (A)NEGATIVE_INFINITY;
            const A y = RUN > 32 && s0 + 32 + lane < last ? extras.score<A>(own[r * RUN + RUN - 32 + lane], queries[r], s0 + 32 + lane, slope) : (A)NEGATIVE_INFINITY;
            A high = Number<A>::larger(Number<A>::larger(x, y), top[r]);
#pragma unroll
            for (i32 d = 16; d > 0; d /= 2) high = Number<A>::larger(high, __shfl_xor_sync(0xffffffffu, high, d));
            const bool none = high == (A)NEGATIVE_INFINITY;
            const A factor = none ? (A)1 : exponential(top[r] - high);
            const A px = none ? (A)0 : exponential(x - high), py = none ? (A)0 : exponential(y - high);
            sum[r] = sum[r] * factor + px + py;
            top[r] = high;
#pragma unroll
            for (i32 e = 0; e < E_PARTS * E_VEC; e++) acc[r][e] *= factor;
            own[r * RUN + lane] = px;
            if (RUN > 32) own[r * RUN + RUN - 32 + lane] = py;
        }
        __syncwarp();
        const i32 many = min(RUN, last - s0);
#pragma unroll 16
        for (i32 n = lane / V_LANES; n < many; n += V_ROWS) {
            const T* row = vs + (i64)(s0 + n) * V_T;
#pragma unroll
            for (i32 i = 0; i < E_PARTS; i++) {
                const i32 e = (i * 32 + lane % V_LANES) * E_VEC;
                A x[E_VEC];
#if E_VEC == 1
                x[0] = e < E ? widen<T>(row[(i64)e * V_D]) : (A)0;
#else
                union {
                    u64 raw;
                    T e[E_VEC];
                } u;
                u.raw = 0;
                if (e < E) u.raw = *(const u64*)(row + e);
#pragma unroll
                for (i32 j = 0; j < E_VEC; j++) x[j] = widen<T>(u.e[j]);
#endif
#pragma unroll
                for (i32 r = 0; r < ROWS; r++) {
                    const A p = own[r * RUN + n];
#pragma unroll
                    for (i32 j = 0; j < E_VEC; j++) acc[r][i * E_VEC + j] += p == 0 ? (A)0 : p * x[j];
                }
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (i32 r = 0; r < ROWS; r++) {
#pragma unroll
        for (i32 d = 16; d > 0; d /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], d);
        if (lane == 0) {
            tops[(warp * ROWS + r) * 2] = top[r];
            tops[(warp * ROWS + r) * 2 + 1] = sum[r];
        }
#pragma unroll
        for (i32 i = 0; i < E_PARTS; i++)
#pragma unroll
            for (i32 j = 0; j < E_VEC; j++) {
                const i32 e = (i * 32 + lane % V_LANES) * E_VEC + j;
                A x = acc[r][i * E_VEC + j];
                if (V_ROWS == 2) x += __shfl_xor_sync(0xffffffffu, x, 16);
                if (e < E && lane < V_LANES) outs[(warp * ROWS + r) * E + e] = x;
            }
    }
    __syncthreads();
    // A part: maximum, sum, E outputs.
#if IN_CLUSTER
    KILN_CLUSTER(A, of_block, SPLITS, split, ROWS * (E + 2));
#endif
    for (i32 r = 0; r < ROWS; r++) {
        if (row0 + r >= ALL_ROWS) break;
        A high = (A)NEGATIVE_INFINITY;
        for (i32 w = 0; w < 4; w++) high = Number<A>::larger(high, tops[(w * ROWS + r) * 2]);
        A factors[4], total = 0;
        for (i32 w = 0; w < 4; w++) {
            const A m = tops[(w * ROWS + r) * 2];
            factors[w] = m == (A)NEGATIVE_INFINITY ? (A)0 : exponential(m - high);
            total += factors[w] == 0 ? (A)0 : factors[w] * tops[(w * ROWS + r) * 2 + 1];
        }
#if IN_CLUSTER
        A* part = of_block + r * (E + 2);
#else
        A* part = parts + ((((i64)b * GROUPS + g) * ALL_ROWS + row0 + r) * SPLITS + split) * (E + 2);
#endif
        if (threadIdx.x == 0) {
            part[0] = high;
            part[1] = total;
        }
        for (i32 e = threadIdx.x; e < E; e += 128) {
            A x = 0;
            for (i32 w = 0; w < 4; w++) x += factors[w] == 0 ? (A)0 : factors[w] * outs[(w * ROWS + r) * E + e];
            part[2 + e] = x;
        }
    }
#if IN_CLUSTER
    cluster_sync();
    if (split == SPLITS - 1) {
        for (i32 n = threadIdx.x; n < ROWS * E; n += 128) {
            const i32 r = n / E, e = n % E;
            if (row0 + r >= ALL_ROWS) break;
            A tops_of[SPLITS], high = (A)NEGATIVE_INFINITY, total = 0, x = 0;
#pragma unroll
            for (i32 s = 0; s < SPLITS; s++) {
                tops_of[s] = cluster_read(of_block, s, r * (E + 2));
                high = Number<A>::larger(high, tops_of[s]);
            }
#pragma unroll
            for (i32 s = 0; s < SPLITS; s++) {
                const A sum_of = cluster_read(of_block, s, r * (E + 2) + 1), y = cluster_read(of_block, s, r * (E + 2) + 2 + e);
                const A factor = tops_of[s] == (A)NEGATIVE_INFINITY ? (A)0 : exponential(tops_of[s] - high);
                total += factor == 0 ? (A)0 : factor * sum_of;
                x += factor == 0 ? (A)0 : factor * y;
            }
            const bool none = high == (A)NEGATIVE_INFINITY;
            const i32 row = row0 + r, h = g * (HEADS / GROUPS) + row / QUERIES, t = row % QUERIES;
            out[O_ORIGIN + (i64)b * O_B + (i64)h * O_H + (i64)t * O_T + (i64)e * O_D] = narrow<T>(none ? (A)0 : x / total);
            if (HAS_LSE && e == 0) lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)t * L_T] = none ? high : high + logarithm(total);
        }
    }
    cluster_sync();
#endif
}
#endif

#ifdef ENTRY_attention_parts
// Puts the parts of a row together. A block a row.
extern "C" __global__ void __launch_bounds__(128) attention_parts(const A* parts, T* out, A* lse, const u64* args) {
    chain();
    const i32 row = blockIdx.x % ALL_ROWS, g = blockIdx.x / ALL_ROWS % GROUPS, b = blockIdx.x / ALL_ROWS / GROUPS;
    const i32 h = g * (HEADS / GROUPS) + row / QUERIES, t = row % QUERIES;
    const A* part = parts + (i64)blockIdx.x * SPLITS * (E + 2);
    A high = (A)NEGATIVE_INFINITY, total = 0;
    for (i32 s = 0; s < SPLITS; s++) high = Number<A>::larger(high, part[s * (E + 2)]);
    for (i32 s = 0; s < SPLITS; s++) {
        const A m = part[s * (E + 2)];
        if (m != (A)NEGATIVE_INFINITY) total += exponential(m - high) * part[s * (E + 2) + 1];
    }
    const bool none = high == (A)NEGATIVE_INFINITY;
    for (i32 e = threadIdx.x; e < E; e += 128) {
        A x = 0;
        for (i32 s = 0; s < SPLITS; s++) {
            const A m = part[s * (E + 2)];
            if (m != (A)NEGATIVE_INFINITY) x += exponential(m - high) * part[s * (E + 2) + 2 + e];
        }
        out[O_ORIGIN + (i64)b * O_B + (i64)h * O_H + (i64)t * O_T + (i64)e * O_D] = narrow<T>(none ? (A)0 : x / total);
    }
    if (HAS_LSE && threadIdx.x == 0) lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)t * L_T] = none ? high : high + logarithm(total);
}
#endif
