// Attention of few queries: blocks share out the keys, every key and value is read once for up to ROWS query rows, and the parts are put together after.
// Eight lanes take the product of a key, so that a warp handles four keys at a time.
#ifdef ENTRY_attention_decode
// VEC adjacent elements.
__device__ __forceinline__ void load(const T* p, A (&x)[VEC]) {
#if VEC == 1
    x[0] = widen<T>(*p);
#else
    union {
        uint4 raw;
        T e[VEC];
    } u;
    u.raw = *(const uint4*)p;
#pragma unroll
    for (i32 i = 0; i < VEC; i++) x[i] = widen<T>(u.e[i]);
#endif
}

extern "C" __global__ void __launch_bounds__(128) attention_decode(const T* q, const T* k, const T* v, const u8* mask, const T* bias, A* parts, const u64* args) {
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
    const i32 first = split * SPLIT, last = min(first + SPLIT, (i32)KEYS);
    // Warps take turns at runs of RUN keys: 32 or 64.
    for (i32 s0 = first + warp * RUN; s0 < last; s0 += 4 * RUN) {
#pragma unroll 8
        for (i32 n = 0; n < RUN; n += 4) {
            const i32 s = s0 + n + quarter;
            A dot[ROWS];
#pragma unroll
            for (i32 r = 0; r < ROWS; r++) dot[r] = 0;
            if (s < last) {
#pragma unroll
                for (i32 i = 0; i < D_PARTS; i++) {
                    const i32 d = (i * 8 + sub) * VEC;
                    if (D_FULL || d < D) {
                        A x[VEC];
                        load(ks + (i64)s * K_T + (i64)d * K_D, x);
#pragma unroll
                        for (i32 r = 0; r < ROWS; r++)
#pragma unroll
                            for (i32 j = 0; j < VEC; j++) dot[r] += qs[r][i * VEC + j] * x[j];
                    }
                }
            }
#pragma unroll
            for (i32 r = 0; r < ROWS; r++) {
                dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 1);
                dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 2);
                dot[r] += __shfl_xor_sync(0xffffffffu, dot[r], 4);
                if (sub == 0) {
                    A slope;
                    const Extras extras(mask, bias, b, heads[r], args);
                    own[r * RUN + n + quarter] = s < last ? extras.score<A>(dot[r], queries[r], s, slope) : (A)NEGATIVE_INFINITY;
                }
            }
        }
        __syncwarp();
#pragma unroll
        for (i32 r = 0; r < ROWS; r++) {
            const A x = own[r * RUN + lane], y = RUN > 32 ? own[r * RUN + RUN - 32 + lane] : (A)NEGATIVE_INFINITY;
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
        for (i32 n = 0; n < many; n++) {
            const T* row = vs + (i64)(s0 + n) * V_T;
#pragma unroll
            for (i32 i = 0; i < E_PARTS; i++) {
                const i32 e = (i * 32 + lane) * E_VEC;
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
                const i32 e = (i * 32 + lane) * E_VEC + j;
                if (e < E) outs[(warp * ROWS + r) * E + e] = acc[r][i * E_VEC + j];
            }
    }
    __syncthreads();
    // A part: maximum, sum, E outputs.
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
        A* part = parts + ((((i64)b * GROUPS + g) * ALL_ROWS + row0 + r) * SPLITS + split) * (E + 2);
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
}
#endif

#ifdef ENTRY_attention_parts
// Puts the parts of a row together. A block a row.
extern "C" __global__ void __launch_bounds__(128) attention_parts(const A* parts, T* out, A* lse, const u64* args) {
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
