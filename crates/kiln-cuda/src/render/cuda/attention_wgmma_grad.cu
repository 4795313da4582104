// Attention's gradient for half floats on warpgroups: one fetches, the others compute. Every result has one owner, so that nothing is added by atomics.
// Rows that a block owns: 64 a consumer. Two blocks of one consumer share a multiprocessor, so that one computes while the other starts or ends.
#define OWN (64 * CONSUMERS)
#define THREADS (128 + 128 * CONSUMERS)
#define RESIDENT (CONSUMERS == 1 ? 2 : 1)
#define CONSUMER_REGISTERS (CONSUMERS == 1 ? 232 : 240)

// Scores that are nothing but a product times a factor: one multiplication and an exponential, and at the edges a choice behind them.
#define SIMPLE (PLAIN_SCORES && !HAS_MASK)

// From a product to a probability. `log_sum` is a logarithm to the base 2.
__device__ __forceinline__ float probability(const Extras& extras, float product, i32 t, i32 s, float log_sum, float& slope) {
    slope = 1;
    const float x = extras.score<float>(product, t, s, slope);
    return x == NEGATIVE_INFINITY || log_sum == NEGATIVE_INFINITY ? 0.0f : exp2_fast(x * (float)LOG2E - log_sum);
}

// Writes a consumer's 64 rows.
template <i32 N> __device__ __forceinline__ void put(T* to, i64 row_step, i64 col_step, i32 row, i32 rows, const float (&x)[N], float by, i32 lane) {
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        const i32 r = row + half * 8;
        if (r >= rows) continue;
#pragma unroll
        for (i32 n = 0; n < N / 4; n++) {
            T* at = to + (i64)r * row_step + (i64)(n * 8 + lane % 4 * 2) * col_step;
            const float u = x[n * 4 + half * 2] * by, v = x[n * 4 + half * 2 + 1] * by;
            if (PAIRS) {
                *(u32*)at = Arith<T>::pack(u, v);
            } else {
                at[0] = narrow<T>(u);
                at[col_step] = narrow<T>(v);
            }
        }
    }
}

// a (64 rows of a tile of ROWS) . b^T (64 rows), over DEPTH.
template <i32 ROWS, i32 DEPTH> __device__ __forceinline__ void rows_product(float (&s)[32], u32 a, u32 b) {
#pragma unroll
    for (i32 d = 0; d < DEPTH; d += 16) {
        multiply_shared(s, operand(a + (u32)(d / 64 * ROWS * 128 + d % 64 * 2), 16), operand(b + (u32)(d / 64 * 64 * 128 + d % 64 * 2), 16), d > 0);
    }
}
// acc += p . x for the 64 rows of x.
template <i32 N> __device__ __forceinline__ void columns_product(float (&acc)[N], const u32 (&p)[4][4], u32 x) {
#pragma unroll
    for (i32 n = 0; n < 4; n++) multiply_registers(acc, p[n], operand(x + (u32)(n * 16 * 128), 64 * 128));
}
__device__ __forceinline__ void pack(u32 (&p)[4][4], const float (&s)[32]) {
#pragma unroll
    for (i32 n = 0; n < 4; n++)
#pragma unroll
        for (i32 j = 0; j < 4; j++) p[n][j] = Arith<T>::pack(s[n * 8 + j * 2], s[n * 8 + j * 2 + 1]);
}

#ifdef ENTRY_attention_wgmma_dkv
// A block owns OWN keys and goes through the queries of all heads that share them, 64 at a time; scores are transposed, rows are keys.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention_wgmma_dkv(const T* q, const T* k, const T* v, const T* dout, const float* lse, const float* delta, const u8* mask, const T* bias, T* dk, T* dv, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    const u32 base = shared_address(shared_bytes), k_at = (base + 1024 + STAGES * 512 + 1023) & ~1023u, v_at = k_at + OWN * D * 2;
    const u32 q_at = v_at + OWN * E * 2, do_at = q_at + STAGES * 64 * D * 2;
    const u32 own_full = base, full = base + 8, empty = full + STAGES * 8;
    // Logarithms and products of the rows of a stage.
    float* rows = (float*)((u8*)shared_bytes + 1024);
    const i32 group = threadIdx.x / 128, t = threadIdx.x % 128;
    i32 block = blockIdx.x;
    const i32 s0 = block % TILES_S * OWN;
    block /= TILES_S;
    const i32 g = block % GROUPS, b = block / GROUPS;
    const i32 first = CAUSAL ? max(0, s0 - ((i32)KEYS - (i32)QUERIES)) / 64 : 0;
    const i32 steps = max(0, ((i32)QUERIES + 63) / 64 - first), all = steps * (HEADS / GROUPS);
    if (threadIdx.x == 0) {
        barrier_init(own_full, 128);
        for (i32 i = 0; i < STAGES; i++) {
            barrier_init(full + i * 8, 128);
            barrier_init(empty + i * 8, 128 * CONSUMERS);
        }
        fence_barriers();
    }
    __syncthreads();
    if (group == 0) {
        registers_down<24>();
        fetch<OWN, D_PANELS>(k_at, k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H, K_T, s0, KEYS, t);
        fetch<OWN, E_PANELS>(v_at, v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H, V_T, s0, KEYS, t);
        copy_commit();
        Queue queue;
        queue.last = own_full;
        i32 stage = 0;
        u32 parity = 1;
        for (i32 n = 0; n < all; n++) {
            const i32 h = g * (HEADS / GROUPS) + (HEADS == GROUPS ? 0 : n / steps), t0 = (first + (HEADS == GROUPS ? n : n % steps)) * 64;
            queue.room(empty + stage * 8, parity);
            fetch<64, D_PANELS>(q_at + (u32)(stage * 64 * D * 2), q + Q_ORIGIN + (i64)b * Q_B + (i64)h * Q_H, Q_T, t0, QUERIES, t);
            fetch<64, E_PANELS>(do_at + (u32)(stage * 64 * E * 2), dout + DO_ORIGIN + (i64)b * DO_B + (i64)h * DO_H, DO_T, t0, QUERIES, t);
            const i32 query = t0 + t % 64;
            float value = t < 64 ? NEGATIVE_INFINITY : 0.0f;
            if (query < QUERIES) value = t < 64 ? lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)query * L_T] * (float)LOG2E : delta[((i64)b * HEADS + h) * QUERIES + query];
            rows[stage * 128 + t] = value;
            queue.started(full + stage * 8);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            if (stage == 0) parity ^= 1;
        }
        queue.announce<0>();
    } else {
        registers_up<CONSUMER_REGISTERS>();
        const i32 me = group - 1, lane = t % 32, key = s0 + me * 64 + t / 32 * 16 + lane / 4;
        float dks[D / 2], dvs[E / 2];
#pragma unroll
        for (i32 i = 0; i < D / 2; i++) dks[i] = 0;
#pragma unroll
        for (i32 i = 0; i < E / 2; i++) dvs[i] = 0;
        barrier_wait(own_full, 0);
        i32 stage = 0;
        u32 parity = 0;
        for (i32 n = 0; n < all; n++) {
            const i32 h = g * (HEADS / GROUPS) + (HEADS == GROUPS ? 0 : n / steps), t0 = (first + (HEADS == GROUPS ? n : n % steps)) * 64;
            const Extras extras(mask, bias, b, h, args);
            const u32 queries_at = q_at + (u32)(stage * 64 * D * 2), gradients_at = do_at + (u32)(stage * 64 * E * 2);
            float s[32], dp[32];
            u32 p[4][4];
            barrier_wait(full + stage * 8, parity);
            products_begin();
            rows_product<OWN, D>(s, k_at + (u32)(me * 64 * 128), queries_at);
            products_commit();
            rows_product<OWN, E>(dp, v_at + (u32)(me * 64 * 128), gradients_at);
            products_commit();
            products_wait<1>();
            settle(s);
            const float* sums = rows + stage * 128;
            const bool edge = s0 + me * 64 + 64 > visible(t0) || t0 + 64 > QUERIES || HAS_BLANKS;
            float slopes[HAS_CAP ? 32 : 1];
#pragma unroll
            for (i32 m = 0; m < 8; m++) {
                const float2 logs = *(const float2*)(sums + m * 8 + lane % 4 * 2);
#pragma unroll
                for (i32 j = 0; j < 4; j++) {
                    if (SIMPLE) {
                        s[m * 4 + j] = exp2_fast(s[m * 4 + j] * (float)(SCALE * LOG2E) - (j % 2 ? logs.y : logs.x));
                    } else {
                        float slope;
                        s[m * 4 + j] = probability(extras, s[m * 4 + j], t0 + m * 8 + lane % 4 * 2 + j % 2, key + j / 2 * 8, j % 2 ? logs.y : logs.x, slope);
                        if (HAS_CAP) slopes[HAS_CAP ? m * 4 + j : 0] = slope;
                    }
                }
            }
            if (SIMPLE && edge) {
#pragma unroll
                for (i32 m = 0; m < 8; m++) {
                    const float2 logs = *(const float2*)(sums + m * 8 + lane % 4 * 2);
#pragma unroll
                    for (i32 j = 0; j < 4; j++) {
                        const i32 query = t0 + m * 8 + lane % 4 * 2 + j % 2;
                        const bool hidden = key + j / 2 * 8 >= visible(query) || query >= QUERIES || (j % 2 ? logs.y : logs.x) == NEGATIVE_INFINITY;
                        s[m * 4 + j] = hidden ? 0.0f : s[m * 4 + j];
                    }
                }
            }
            pack(p, s);
            products_wait<0>();
            settle(dp);
            products_begin();
            columns_product(dvs, p, gradients_at);
            products_commit();
#pragma unroll
            for (i32 m = 0; m < 8; m++) {
                const float2 own = *(const float2*)(sums + 64 + m * 8 + lane % 4 * 2);
#pragma unroll
                for (i32 j = 0; j < 4; j++) dp[m * 4 + j] = s[m * 4 + j] * (dp[m * 4 + j] - (j % 2 ? own.y : own.x)) * (HAS_CAP ? slopes[HAS_CAP ? m * 4 + j : 0] : 1.0f);
            }
            u32 ds[4][4];
            pack(ds, dp);
            products_begin();
            columns_product(dks, ds, queries_at);
            products_commit();
            products_wait<0>();
            settle(dvs);
            settle(dks);
            barrier_arrive(empty + stage * 8);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            if (stage == 0) parity ^= 1;
        }
        if (WANT_DK) put(dk + DK_ORIGIN + (i64)b * DK_B + (i64)g * DK_H, DK_T, DK_D, key, KEYS, dks, (float)SCALE, lane);
        if (WANT_DV) put(dv + DV_ORIGIN + (i64)b * DV_B + (i64)g * DV_H, DV_T, DV_D, key, KEYS, dvs, 1.0f, lane);
    }
}
#endif

#ifdef ENTRY_attention_wgmma_dq
// A block owns OWN queries and goes through the keys 64 at a time.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) attention_wgmma_dq(const T* q, const T* k, const T* v, const T* dout, const float* lse, const float* delta, const u8* mask, const T* bias, T* dq, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    const u32 base = shared_address(shared_bytes), q_at = (base + 1024 + 1023) & ~1023u, do_at = q_at + OWN * D * 2;
    const u32 k_at = do_at + OWN * E * 2, v_at = k_at + STAGES * 64 * D * 2;
    const u32 own_full = base, full = base + 8, empty = full + STAGES * 8;
    const i32 group = threadIdx.x / 128, t = threadIdx.x % 128;
    i32 block = blockIdx.x;
    const i32 t0 = (TILES_T - 1 - block % TILES_T) * OWN;
    block /= TILES_T;
    const i32 h = block % HEADS, b = block / HEADS, g = h / (HEADS / GROUPS);
    const i32 end = visible(min(t0 + 127, (i32)QUERIES - 1)), tiles = (end + 63) / 64;
    if (threadIdx.x == 0) {
        barrier_init(own_full, 128);
        for (i32 i = 0; i < STAGES; i++) {
            barrier_init(full + i * 8, 128);
            barrier_init(empty + i * 8, 128 * CONSUMERS);
        }
        fence_barriers();
    }
    __syncthreads();
    if (group == 0) {
        registers_down<24>();
        const T* ks = k + K_ORIGIN + (i64)b * K_B + (i64)g * K_H;
        const T* vs = v + V_ORIGIN + (i64)b * V_B + (i64)g * V_H;
        fetch<OWN, D_PANELS>(q_at, q + Q_ORIGIN + (i64)b * Q_B + (i64)h * Q_H, Q_T, t0, QUERIES, t);
        fetch<OWN, E_PANELS>(do_at, dout + DO_ORIGIN + (i64)b * DO_B + (i64)h * DO_H, DO_T, t0, QUERIES, t);
        copy_commit();
        Queue queue;
        queue.last = own_full;
        i32 stage = 0;
        u32 parity = 1;
        for (i32 n = 0; n < tiles; n++) {
            queue.room(empty + stage * 8, parity);
            fetch<64, D_PANELS>(k_at + (u32)(stage * 64 * D * 2), ks, K_T, n * 64, KEYS, t);
            fetch<64, E_PANELS>(v_at + (u32)(stage * 64 * E * 2), vs, V_T, n * 64, KEYS, t);
            queue.started(full + stage * 8);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            if (stage == 0) parity ^= 1;
        }
        queue.announce<0>();
    } else {
        registers_up<CONSUMER_REGISTERS>();
        const i32 me = group - 1, lane = t % 32, row = t0 + me * 64 + t / 32 * 16 + lane / 4;
        const Extras extras(mask, bias, b, h, args);
        float log_sum[2], own[2];
#pragma unroll
        for (i32 half = 0; half < 2; half++) {
            const i32 r = row + half * 8;
            log_sum[half] = r < QUERIES ? lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)r * L_T] * (float)LOG2E : NEGATIVE_INFINITY;
            own[half] = r < QUERIES ? delta[((i64)b * HEADS + h) * QUERIES + r] : 0.0f;
        }
        float acc[D / 2];
#pragma unroll
        for (i32 i = 0; i < D / 2; i++) acc[i] = 0;
        barrier_wait(own_full, 0);
        i32 stage = 0;
        u32 parity = 0;
        for (i32 n = 0; n < tiles; n++) {
            const u32 keys_at = k_at + (u32)(stage * 64 * D * 2), values_at = v_at + (u32)(stage * 64 * E * 2);
            float s[32], dp[32];
            u32 ds[4][4];
            barrier_wait(full + stage * 8, parity);
            products_begin();
            rows_product<OWN, D>(s, q_at + (u32)(me * 64 * 128), keys_at);
            products_commit();
            rows_product<OWN, E>(dp, do_at + (u32)(me * 64 * 128), values_at);
            products_commit();
            products_wait<1>();
            settle(s);
            const bool edge = n * 64 + 64 > visible(t0 + me * 64) || t0 + OWN > QUERIES || HAS_BLANKS;
            float slopes[HAS_CAP ? 32 : 1];
#pragma unroll
            for (i32 m = 0; m < 32; m++) {
                if (SIMPLE) {
                    s[m] = exp2_fast(s[m] * (float)(SCALE * LOG2E) - log_sum[m / 2 % 2]);
                } else {
                    float slope;
                    s[m] = probability(extras, s[m], row + m / 2 % 2 * 8, n * 64 + m / 4 * 8 + lane % 4 * 2 + m % 2, log_sum[m / 2 % 2], slope);
                    if (HAS_CAP) slopes[HAS_CAP ? m : 0] = slope;
                }
            }
            if (SIMPLE && edge) {
#pragma unroll
                for (i32 m = 0; m < 32; m++) {
                    const i32 query = row + m / 2 % 2 * 8;
                    const bool hidden = n * 64 + m / 4 * 8 + lane % 4 * 2 + m % 2 >= visible(query) || query >= QUERIES || log_sum[m / 2 % 2] == NEGATIVE_INFINITY;
                    s[m] = hidden ? 0.0f : s[m];
                }
            }
            products_wait<0>();
            settle(dp);
#pragma unroll
            for (i32 m = 0; m < 32; m++) dp[m] = s[m] * (dp[m] - own[m / 2 % 2]) * (HAS_CAP ? slopes[HAS_CAP ? m : 0] : 1.0f);
            pack(ds, dp);
            products_begin();
            columns_product(acc, ds, keys_at);
            products_commit();
            products_wait<0>();
            settle(acc);
            barrier_arrive(empty + stage * 8);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            if (stage == 0) parity ^= 1;
        }
        put(dq + DQ_ORIGIN + (i64)b * DQ_B + (i64)h * DQ_H, DQ_T, DQ_D, row, QUERIES, acc, (float)SCALE, lane);
    }
}
#endif
