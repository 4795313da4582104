// Attention and its gradient for half floats on the tensor cores of warps, with running maxima (Dao, "FlashAttention-2", 2023). Every warp owns 16 rows.
#define THREADS (32 * WARPS)
#define SIDE (16 * WARPS)
#define DP (D + 8)
#define EP (E + 8)
#define LOG2E 1.4426950408889634
#define LN2 0.6931471805599453f
#define HALF_IS_BF16 (BRAIN)
// With nothing but a factor on the scores it goes into the exponential.
#define PLAIN_SCORES (!HAS_CAP && !HAS_BIAS && SCALE > 0)

// ROWS rows of COLS elements from row `row0` on; rows from `limit` on are zeros.
template <i32 ROWS, i32 COLS> __device__ __forceinline__ void fetch(u32 to, const T* from, i64 step, i32 row0, i32 limit) {
#pragma unroll
    for (i32 c = 0; c < (ROWS * COLS / 8 + THREADS - 1) / THREADS; c++) {
        const i32 at = c * THREADS + (i32)threadIdx.x;
        if (ROWS * COLS / 8 % THREADS != 0 && at >= ROWS * COLS / 8) break;
        const i32 r = at / (COLS / 8), part = at % (COLS / 8);
        const bool there = row0 + r < limit;
        copy_async_16(to + (u32)((r * (COLS + 8) + part * 8) * 2), from + (there ? (i64)(row0 + r) * step : 0) + part * 8, there ? 16 : 0);
    }
}

// s[n] += a (16 rows at `left`) . b (ROWS rows at `right`, as columns), over DEPTH.
template <i32 ROWS, i32 DEPTH> __device__ __forceinline__ void products(float (&s)[ROWS / 8][4], u32 left, u32 right, i32 lane) {
#pragma unroll
    for (i32 k = 0; k < DEPTH; k += 16) {
        u32 a[4];
        load_matrices<false>(a, left + left_place<DEPTH + 8>(lane) + k * 2);
#pragma unroll
        for (i32 n = 0; n < ROWS; n += 16) {
            u32 b[4];
            load_matrices<false>(b, right + (u32)(n * (DEPTH + 8) * 2) + right_place<DEPTH + 8>(lane) + k * 2);
            multiply<HALF_IS_BF16>(s[n / 8], a, b[0], b[1]);
            multiply<HALF_IS_BF16>(s[n / 8 + 1], a, b[2], b[3]);
        }
    }
}

// acc[n] += p (16 rows by ROWS, in registers) . x (ROWS rows at `right`) of WIDTH columns.
template <i32 ROWS, i32 WIDTH> __device__ __forceinline__ void apply(float (&acc)[WIDTH / 8][4], const float (&p)[ROWS / 8][4], u32 right, i32 lane) {
#pragma unroll
    for (i32 k = 0; k < ROWS; k += 16) {
        u32 a[4];
        a[0] = Arith<T>::pack(p[k / 8][0], p[k / 8][1]);
        a[1] = Arith<T>::pack(p[k / 8][2], p[k / 8][3]);
        a[2] = Arith<T>::pack(p[k / 8 + 1][0], p[k / 8 + 1][1]);
        a[3] = Arith<T>::pack(p[k / 8 + 1][2], p[k / 8 + 1][3]);
#pragma unroll
        for (i32 n = 0; n < WIDTH; n += 16) {
            u32 b[4];
            load_matrices<true>(b, right + (u32)((k * (WIDTH + 8) + n) * 2) + left_place<WIDTH + 8>(lane));
            multiply<HALF_IS_BF16>(acc[n / 8], a, b[0], b[1]);
            multiply<HALF_IS_BF16>(acc[n / 8 + 1], a, b[2], b[3]);
        }
    }
}

template <i32 N> __device__ __forceinline__ void clear(float (&x)[N][4]) {
#pragma unroll
    for (i32 i = 0; i < N; i++)
#pragma unroll
        for (i32 j = 0; j < 4; j++) x[i][j] = 0;
}

// Writes 16 rows of WIDTH columns; a lane holds pairs of neighbours.
template <i32 WIDTH> __device__ __forceinline__ void put(T* to, i64 row_step, i64 col_step, i32 row, i32 rows, const float (&x)[WIDTH / 8][4], float low, float high, i32 lane) {
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        const i32 r = row + lane / 4 + half * 8;
        if (r >= rows) continue;
        const float by = half ? high : low;
#pragma unroll
        for (i32 n = 0; n < WIDTH / 8; n++) {
            T* at = to + (i64)r * row_step + (i64)(n * 8 + lane % 4 * 2) * col_step;
            const float u = x[n][half * 2] * by, v = x[n][half * 2 + 1] * by;
            if (PAIRS) {
                *(u32*)at = Arith<T>::pack(u, v);
            } else {
                at[0] = narrow<T>(u);
                at[col_step] = narrow<T>(v);
            }
        }
    }
}

#ifdef ENTRY_attention_mma
extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_mma(const T* q, const T* k, const T* v, const u8* mask, const T* bias, T* out, float* lse, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    const u32 q_at = shared_address(shared_bytes), k_at = q_at + SIDE * DP * 2, v_at = k_at + 2 * BLOCK * DP * 2;
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i32 block = blockIdx.x;
    const i32 t0 = (TILES_T - 1 - block % TILES_T) * SIDE;
    block /= TILES_T;
    const i32 h = block % HEADS, b = block / HEADS, g = h / (HEADS / GROUPS);
    const Extras extras(mask, bias, b, h, args);
    const T* qs = q + Q_ORIGIN + (i64)b * Q_B + (i64)h * Q_H;
    const T* ks = k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H;
    const T* vs = v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H;
    const i32 end = visible(min(t0 + SIDE - 1, (i32)QUERIES - 1)), tiles = (end + BLOCK - 1) / BLOCK;
    fetch<SIDE, D>(q_at, qs, Q_T, t0, QUERIES);
    if (tiles > 0) {
        fetch<BLOCK, D>(k_at, ks, K_T, 0, KEYS);
        fetch<BLOCK, E>(v_at, vs, V_T, 0, KEYS);
    }
    copy_commit();
    const i32 row = t0 + warp * 16 + lane / 4;
    const u32 left = q_at + (u32)(warp * 16 * DP * 2);
    float acc[E / 8][4], top[2] = {NEGATIVE_INFINITY, NEGATIVE_INFINITY}, sum[2] = {0, 0};
    clear<E / 8>(acc);
    const float factor = (float)(PLAIN_SCORES ? SCALE * LOG2E : 1.0);
    for (i32 tile = 0; tile < tiles; tile++) {
        const i32 s0 = tile * BLOCK, stage = tile & 1;
        if (tile + 1 < tiles) {
            fetch<BLOCK, D>(k_at + (u32)((stage ^ 1) * BLOCK * DP * 2), ks, K_T, s0 + BLOCK, KEYS);
            fetch<BLOCK, E>(v_at + (u32)((stage ^ 1) * BLOCK * EP * 2), vs, V_T, s0 + BLOCK, KEYS);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        float s[BLOCK / 8][4];
        clear<BLOCK / 8>(s);
        products<BLOCK, D>(s, left, k_at + (u32)(stage * BLOCK * DP * 2), lane);
        // Only at the edges of what is visible does a key have to be looked at, unless more than a factor makes a score.
        if (!PLAIN_SCORES || HAS_MASK || s0 + BLOCK > visible(t0 + warp * 16) || s0 + BLOCK > KEYS) {
#pragma unroll
            for (i32 n = 0; n < BLOCK / 8; n++)
#pragma unroll
                for (i32 j = 0; j < 4; j++) {
                    const i32 key = s0 + n * 8 + lane % 4 * 2 + j % 2, query = row + j / 2 * 8;
                    float slope;
                    const float x = extras.score<float>(s[n][j], query, key, slope);
                    s[n][j] = PLAIN_SCORES ? (x == NEGATIVE_INFINITY ? x : s[n][j]) : x * (float)LOG2E;
                }
        }
#pragma unroll
        for (i32 half = 0; half < 2; half++) {
            float high = top[half];
#pragma unroll
            for (i32 n = 0; n < BLOCK / 8; n++) high = fmaxf(high, fmaxf(s[n][half * 2], s[n][half * 2 + 1]));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
            const float base = high == NEGATIVE_INFINITY ? 0.0f : high * factor;
            const float shrink = exp2_fast(top[half] * factor - base);
            top[half] = high;
            float own = 0;
#pragma unroll
            for (i32 n = 0; n < BLOCK / 8; n++)
#pragma unroll
                for (i32 j = half * 2; j < half * 2 + 2; j++) {
                    s[n][j] = exp2_fast(s[n][j] * factor - base);
                    own += s[n][j];
                }
            sum[half] = sum[half] * shrink + own;
#pragma unroll
            for (i32 n = 0; n < E / 8; n++) {
                acc[n][half * 2] *= shrink;
                acc[n][half * 2 + 1] *= shrink;
            }
        }
        apply<BLOCK, E>(acc, s, v_at + (u32)(stage * BLOCK * EP * 2), lane);
        __syncthreads();
    }
    float over[2];
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
        over[half] = sum[half] == 0 ? 0.0f : 1 / sum[half];
        const i32 t = row + half * 8;
        if (HAS_LSE && lane % 4 == 0 && t < QUERIES)
            lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)t * L_T] = sum[half] == 0 ? NEGATIVE_INFINITY : (top[half] == NEGATIVE_INFINITY ? 0.0f : top[half] * factor * LN2) + logf(sum[half]);
    }
    put<E>(out + O_ORIGIN + (i64)b * O_B + (i64)h * O_H, O_T, O_D, t0 + warp * 16, QUERIES, acc, over[0], over[1], lane);
}
#endif

#if defined(ENTRY_attention_mma_dq) || defined(ENTRY_attention_mma_dkv)
// From a product to a probability, and its part in the gradient of the product.
__device__ __forceinline__ float probability(const Extras& extras, float product, i32 t, i32 s, float log_sum, bool edge, float& slope) {
    slope = 1;
    if (PLAIN_SCORES && !HAS_MASK && !edge) return exp2_fast(product * (float)(SCALE * LOG2E) - log_sum * (float)LOG2E);
    const float x = extras.score<float>(product, t, s, slope);
    return x == NEGATIVE_INFINITY || log_sum == NEGATIVE_INFINITY ? 0.0f : exp2_fast((x - log_sum) * (float)LOG2E);
}
#endif

#ifdef ENTRY_attention_mma_dq
extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_mma_dq(const T* q, const T* k, const T* v, const T* dout, const float* lse, const float* delta, const u8* mask, const T* bias, T* dq, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    const u32 q_at = shared_address(shared_bytes), do_at = q_at + SIDE * DP * 2, k_at = do_at + SIDE * EP * 2, v_at = k_at + 2 * BLOCK * DP * 2;
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i32 block = blockIdx.x;
    const i32 t0 = (TILES_T - 1 - block % TILES_T) * SIDE;
    block /= TILES_T;
    const i32 h = block % HEADS, b = block / HEADS, g = h / (HEADS / GROUPS);
    const Extras extras(mask, bias, b, h, args);
    const T* ks = k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H;
    const T* vs = v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H;
    const i32 end = visible(min(t0 + SIDE - 1, (i32)QUERIES - 1)), tiles = (end + BLOCK - 1) / BLOCK;
    fetch<SIDE, D>(q_at, q + Q_ORIGIN + (i64)b * Q_B + (i64)h * Q_H, Q_T, t0, QUERIES);
    fetch<SIDE, E>(do_at, dout + DO_ORIGIN + (i64)b * DO_B + (i64)h * DO_H, DO_T, t0, QUERIES);
    if (tiles > 0) {
        fetch<BLOCK, D>(k_at, ks, K_T, 0, KEYS);
        fetch<BLOCK, E>(v_at, vs, V_T, 0, KEYS);
    }
    copy_commit();
    const i32 row = t0 + warp * 16 + lane / 4;
    float log_sum[2], own[2];
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        const i32 t = row + half * 8;
        log_sum[half] = t < QUERIES ? lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)t * L_T] : NEGATIVE_INFINITY;
        own[half] = t < QUERIES ? delta[((i64)b * HEADS + h) * QUERIES + t] : 0.0f;
    }
    // A row that sees nothing has no gradient; its infinite logarithm must not meet the short cut.
    const bool blank = __any_sync(0xffffffffu, log_sum[0] == NEGATIVE_INFINITY || log_sum[1] == NEGATIVE_INFINITY);
    float acc[D / 8][4];
    clear<D / 8>(acc);
    for (i32 tile = 0; tile < tiles; tile++) {
        const i32 s0 = tile * BLOCK, stage = tile & 1;
        if (tile + 1 < tiles) {
            fetch<BLOCK, D>(k_at + (u32)((stage ^ 1) * BLOCK * DP * 2), ks, K_T, s0 + BLOCK, KEYS);
            fetch<BLOCK, E>(v_at + (u32)((stage ^ 1) * BLOCK * EP * 2), vs, V_T, s0 + BLOCK, KEYS);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        const u32 keys_at = k_at + (u32)(stage * BLOCK * DP * 2);
        float s[BLOCK / 8][4], dp[BLOCK / 8][4];
        clear<BLOCK / 8>(s);
        clear<BLOCK / 8>(dp);
        products<BLOCK, D>(s, q_at + (u32)(warp * 16 * DP * 2), keys_at, lane);
        products<BLOCK, E>(dp, do_at + (u32)(warp * 16 * EP * 2), v_at + (u32)(stage * BLOCK * EP * 2), lane);
        const bool edge = blank || s0 + BLOCK > visible(t0 + warp * 16) || s0 + BLOCK > KEYS;
#pragma unroll
        for (i32 n = 0; n < BLOCK / 8; n++)
#pragma unroll
            for (i32 j = 0; j < 4; j++) {
                float slope;
                const float p = probability(extras, s[n][j], row + j / 2 * 8, s0 + n * 8 + lane % 4 * 2 + j % 2, log_sum[j / 2], edge, slope);
                s[n][j] = p * (dp[n][j] - own[j / 2]) * slope;
            }
        apply<BLOCK, D>(acc, s, keys_at, lane);
        __syncthreads();
    }
    put<D>(dq + DQ_ORIGIN + (i64)b * DQ_B + (i64)h * DQ_H, DQ_T, DQ_D, t0 + warp * 16, QUERIES, acc, (float)SCALE, (float)SCALE, lane);
}
#endif

#ifdef ENTRY_attention_mma_dkv
// A block owns SIDE keys and goes through the queries of all heads that share them, STEP at a time; scores are transposed, a warp's rows are keys.
extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_mma_dkv(const T* q, const T* k, const T* v, const T* dout, const float* lse, const float* delta, const u8* mask, const T* bias, T* dk, T* dv, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    const u32 k_at = shared_address(shared_bytes), v_at = k_at + SIDE * DP * 2, q_at = v_at + SIDE * EP * 2, do_at = q_at + 2 * STEP * DP * 2;
    float* rows = (float*)((u8*)shared_bytes + (do_at - k_at) + 2 * STEP * EP * 2);
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i32 block = blockIdx.x;
    const i32 s0 = block % TILES_S * SIDE;
    block /= TILES_S;
    const i32 g = block % GROUPS, b = block / GROUPS;
    fetch<SIDE, D>(k_at, k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H, K_T, s0, KEYS);
    fetch<SIDE, E>(v_at, v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H, V_T, s0, KEYS);
    const i32 first = CAUSAL ? max(0, s0 - ((i32)KEYS - (i32)QUERIES)) / STEP : 0;
    const i32 steps = max(0, ((i32)QUERIES + STEP - 1) / STEP - first), all = steps * (HEADS / GROUPS);
    // Step n: the head, and the queries of it.
#define STEP_HEAD(n) (g * (HEADS / GROUPS) + (n) / steps)
#define STEP_START(n) ((first + (n) % steps) * STEP)
#define FETCH_STEP(n)                                                                                                                                   \
    {                                                                                                                                                   \
        const i32 hh = STEP_HEAD(n), tt = STEP_START(n), to = (n)&1;                                                                                    \
        fetch<STEP, D>(q_at + (u32)(to * STEP * DP * 2), q + Q_ORIGIN + (i64)b * Q_B + (i64)hh * Q_H, Q_T, tt, QUERIES);                                \
        fetch<STEP, E>(do_at + (u32)(to * STEP * EP * 2), dout + DO_ORIGIN + (i64)b * DO_B + (i64)hh * DO_H, DO_T, tt, QUERIES);                        \
        for (i32 i = threadIdx.x; i < STEP; i += THREADS) {                                                                                             \
            const i32 t = tt + i;                                                                                                                       \
            rows[to * 2 * STEP + i] = t < QUERIES ? lse[L_ORIGIN + (i64)b * L_B + (i64)hh * L_H + (i64)t * L_T] : NEGATIVE_INFINITY;                    \
            rows[to * 2 * STEP + STEP + i] = t < QUERIES ? delta[((i64)b * HEADS + hh) * QUERIES + t] : 0.0f;                                           \
        }                                                                                                                                               \
    }
    if (all > 0) FETCH_STEP(0)
    copy_commit();
    float dks[WANT_DK ? D / 8 : 1][4], dvs[WANT_DV ? E / 8 : 1][4];
    clear<WANT_DK ? D / 8 : 1>(dks);
    clear<WANT_DV ? E / 8 : 1>(dvs);
    for (i32 n = 0; n < all; n++) {
        const i32 stage = n & 1, t0 = STEP_START(n), h = STEP_HEAD(n);
        if (n + 1 < all) FETCH_STEP(n + 1)
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        const Extras extras(mask, bias, b, h, args);
#pragma unroll
        for (i32 part = 0; part < STEP; part += 32) {
            const u32 queries_at = q_at + (u32)((stage * STEP + part) * DP * 2), gradients_at = do_at + (u32)((stage * STEP + part) * EP * 2);
            float s[4][4], dp[4][4];
            clear<4>(s);
            clear<4>(dp);
            products<32, D>(s, k_at + (u32)(warp * 16 * DP * 2), queries_at, lane);
            if (WANT_DK) products<32, E>(dp, v_at + (u32)(warp * 16 * EP * 2), gradients_at, lane);
            const bool edge = s0 + warp * 16 + 16 > visible(t0 + part) || t0 + part + 32 > QUERIES || s0 + SIDE > KEYS;
            const float* sums = rows + stage * 2 * STEP + part;
#pragma unroll
            for (i32 m = 0; m < 4; m++)
#pragma unroll
                for (i32 j = 0; j < 4; j++) {
                    const i32 column = m * 8 + lane % 4 * 2 + j % 2;
                    const float log_sum = sums[column];
                    float slope;
                    const float p = probability(extras, s[m][j], t0 + part + column, s0 + warp * 16 + lane / 4 + j / 2 * 8, log_sum, edge || log_sum == NEGATIVE_INFINITY, slope);
                    s[m][j] = p;
                    dp[m][j] = p * (dp[m][j] - sums[STEP + column]) * slope;
                }
#if WANT_DV
            apply<32, E>(dvs, s, gradients_at, lane);
#endif
#if WANT_DK
            apply<32, D>(dks, dp, queries_at, lane);
#endif
        }
        __syncthreads();
    }
    copy_wait<0>();
#if WANT_DK
    put<D>(dk + DK_ORIGIN + (i64)b * DK_B + (i64)g * DK_H, DK_T, DK_D, s0 + warp * 16, KEYS, dks, (float)SCALE, (float)SCALE, lane);
#endif
#if WANT_DV
    put<E>(dv + DV_ORIGIN + (i64)b * DV_B + (i64)g * DV_H, DV_T, DV_D, s0 + warp * 16, KEYS, dvs, 1.0f, 1.0f, lane);
#endif
}
#endif
