// Attention for half floats on warpgroups (after Shah et al., "FlashAttention-3", 2024): one warpgroup fetches keys and values two tiles ahead, CONSUMERS others own 64
// queries each. A consumer's product with the next keys runs while it works on the probabilities of the last, and, with TURNS, consumers take
// turns at starting products.
// Blocks stay: item after item they take a tile of queries of a head. Items go from long to short within groups of NEAR heads, whose keys and values the second-level
// cache holds; every other round goes backwards, so that blocks get about the same.
#define SIDE (64 * CONSUMERS)

struct Item {
    i32 t0, h, b, g, tiles;
    __device__ __forceinline__ bool take(i32 round) {
        const i32 c = round & 1 ? (i32)gridDim.x - 1 - (i32)blockIdx.x : (i32)blockIdx.x;
        const i32 index = round * (i32)gridDim.x + c;
        if (index >= ITEMS) return false;
        const i32 near = index / (NEAR * TILES_T), rest = index - near * (NEAR * TILES_T);
        // The last group may have fewer heads.
        const i32 heads = min(NEAR, BATCH * HEADS - near * NEAR), head = near * NEAR + rest % heads;
        t0 = (TILES_T - 1 - rest / heads) * SIDE;
        h = head % HEADS;
        b = head / HEADS;
        g = h / (HEADS / GROUPS);
        tiles = (visible(min(t0 + SIDE - 1, (i32)QUERIES - 1)) + KEY_TILE - 1) / KEY_TILE;
        return true;
    }
};

extern "C" __global__ void __launch_bounds__(128 + 128 * CONSUMERS, 1) attention_wgmma(const T* q, const T* k, const T* v, const u8* mask, const T* bias, T* out, float* lse, const u64* args) {
    extern __shared__ uint4 shared_bytes[];
    // Q, two tiles of keys, two of values; barriers before them.
    const u32 base = shared_address(shared_bytes), q_at = (base + 1024) & ~1023u;
    const u32 k_at = q_at + SIDE * D * 2, v_at = k_at + 2 * KEY_TILE * D * 2;
    const u32 q_full = base, k_full = base + 8, v_full = base + 24, k_empty = base + 40, v_empty = base + 56, q_empty = base + 72;
    const i32 group = threadIdx.x / 128, t = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        barrier_init(q_full, 128);
        barrier_init(q_empty, CONSUMERS * 128);
        for (i32 i = 0; i < 2; i++) {
            barrier_init(k_full + i * 8, 128);
            barrier_init(v_full + i * 8, 128);
            barrier_init(k_empty + i * 8, CONSUMERS * 128);
            barrier_init(v_empty + i * 8, CONSUMERS * 128);
        }
        fence_barriers();
    }
    __syncthreads();
    Item item;
    // Tiles of keys so far, over all items: what stage a tile has, and how often it was used.
    i32 done = 0;
    if (group == 0) {
        registers_down<PRODUCER_REGISTERS>();
        Queue queue;
        queue.last = NOTHING;
        for (i32 round = 0; item.take(round); round++) {
            const T* ks = k + K_ORIGIN + (i64)item.b * K_B + (i64)item.g * K_H;
            const T* vs = v + V_ORIGIN + (i64)item.b * V_B + (i64)item.g * V_H;
            queue.room(q_empty, (u32)(round & 1) ^ 1);
            fetch<SIDE, D_PANELS>(q_at, q + Q_ORIGIN + (i64)item.b * Q_B + (i64)item.h * Q_H, Q_T, item.t0, QUERIES, t);
            queue.started(q_full);
            for (i32 n = 0; n < item.tiles; n++, done++) {
                const i32 s0 = (item.tiles - 1 - n) * KEY_TILE, stage = done & 1;
                const u32 parity = (u32)((done / 2 & 1) ^ 1);
                queue.room(k_empty + stage * 8, parity);
                fetch<KEY_TILE, D_PANELS>(k_at + (u32)(stage * KEY_TILE * D * 2), ks, K_T, s0, KEYS, t);
                queue.started(k_full + stage * 8);
                queue.room(v_empty + stage * 8, parity);
                fetch<KEY_TILE, E_PANELS>(v_at + (u32)(stage * KEY_TILE * E * 2), vs, V_T, s0, KEYS, t);
                queue.started(v_full + stage * 8);
            }
        }
        queue.announce<0>();
    } else {
        registers_up<CONSUMER_REGISTERS>();
        const i32 me = group - 1, lane = t % 32;
        const float factor = (float)(PLAIN_SCORES ? SCALE * LOG2E : 1.0);
        float s[KEY_TILE / 2], acc[E / 2], top[2], sum[2], shrink[2];
        u32 p[KEY_TILE / 16][4];

        auto keys_product = [&](i32 stage) {
            products_begin();
#pragma unroll
            for (i32 d = 0; d < D; d += 16) {
                const u32 left = q_at + (u32)(d / 64 * SIDE * 128 + me * 64 * 128 + d % 64 * 2);
                const u32 right = k_at + (u32)(stage * KEY_TILE * D * 2 + d / 64 * KEY_TILE * 128 + d % 64 * 2);
                multiply_shared(s, operand(left, 16), operand(right, 16), d > 0);
            }
            products_commit();
        };
        auto values_product = [&](i32 stage) {
            products_begin();
#pragma unroll
            for (i32 n = 0; n < KEY_TILE; n += 16) {
                const u32 right = v_at + (u32)(stage * KEY_TILE * E * 2 + n * 128);
                multiply_registers(acc, p[n / 16], operand(right, KEY_TILE * 128));
            }
            products_commit();
        };
        auto probabilities = [&](i32 s0, i32 row, const Extras& extras) {
            if (!PLAIN_SCORES || HAS_MASK || s0 + KEY_TILE > visible(item.t0 + me * 64 + t / 32 * 16)) {
#pragma unroll
                for (i32 n = 0; n < KEY_TILE / 8; n++)
#pragma unroll
                    for (i32 j = 0; j < 4; j++) {
                        const i32 key = s0 + n * 8 + lane % 4 * 2 + j % 2, query = row + j / 2 * 8;
                        if (PLAIN_SCORES && !HAS_MASK) {
                            if (key >= visible(query)) s[n * 4 + j] = NEGATIVE_INFINITY;
                        } else {
                            float slope;
                            const float x = extras.score<float>(s[n * 4 + j], query, key, slope);
                            s[n * 4 + j] = PLAIN_SCORES ? (x == NEGATIVE_INFINITY ? x : s[n * 4 + j]) : x * (float)LOG2E;
                        }
                    }
            }
#pragma unroll
            for (i32 half = 0; half < 2; half++) {
                float high = top[half];
#pragma unroll
                for (i32 n = 0; n < KEY_TILE / 8; n++) high = fmaxf(high, fmaxf(s[n * 4 + half * 2], s[n * 4 + half * 2 + 1]));
                high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
                high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
                const float start = high == NEGATIVE_INFINITY ? 0.0f : high * factor;
                shrink[half] = exp2_fast(top[half] * factor - start);
                top[half] = high;
                float own = 0;
#pragma unroll
                for (i32 n = 0; n < KEY_TILE / 8; n++)
#pragma unroll
                    for (i32 j = half * 2; j < half * 2 + 2; j++) {
                        s[n * 4 + j] = exp2_fast(s[n * 4 + j] * factor - start);
                        own += s[n * 4 + j];
                    }
                sum[half] = sum[half] * shrink[half] + own;
            }
        };
        auto pack = [&]() {
#pragma unroll
            for (i32 n = 0; n < KEY_TILE / 16; n++)
#pragma unroll
                for (i32 j = 0; j < 4; j++) p[n][j] = Arith<T>::pack(s[n * 8 + j * 2], s[n * 8 + j * 2 + 1]);
        };

        // The first consumer starts.
        if (TURNS && me == CONSUMERS - 1) named_barrier_arrive(1, 256);
        for (i32 round = 0; item.take(round); round++) {
            const i32 row = item.t0 + me * 64 + t / 32 * 16 + lane / 4;
            const Extras extras(mask, bias, item.b, item.h, args);
            top[0] = top[1] = NEGATIVE_INFINITY;
            sum[0] = sum[1] = 0;
#pragma unroll
            for (i32 i = 0; i < E / 2; i++) acc[i] = 0;
            barrier_wait(q_full, round & 1);
            if (item.tiles > 0) {
                barrier_wait(k_full + (done & 1) * 8, done / 2 & 1);
                keys_product(done & 1);
                products_wait<0>();
                settle(s);
                barrier_arrive(k_empty + (done & 1) * 8);
                if (item.tiles == 1) barrier_arrive(q_empty);
                probabilities((item.tiles - 1) * KEY_TILE, row, extras);
                pack();
                done++;
                for (i32 n = 1; n < item.tiles; n++, done++) {
                    const i32 stage = done & 1, before = stage ^ 1;
                    barrier_wait(k_full + stage * 8, done / 2 & 1);
                    if (TURNS) named_barrier_sync(1 + me, 256);
                    keys_product(stage);
                    barrier_wait(v_full + before * 8, (done - 1) / 2 & 1);
                    values_product(before);
                    if (TURNS) named_barrier_arrive(1 + (me + 1) % CONSUMERS, 256);
                    products_wait<1>();
                    settle(s);
                    barrier_arrive(k_empty + stage * 8);
                    if (n + 1 == item.tiles) barrier_arrive(q_empty);
                    probabilities((item.tiles - 1 - n) * KEY_TILE, row, extras);
                    products_wait<0>();
                    settle(acc);
                    barrier_arrive(v_empty + before * 8);
#pragma unroll
                    for (i32 i = 0; i < E / 2; i++) acc[i] *= shrink[i / 2 % 2];
                    pack();
                }
                const i32 last = (done - 1) & 1;
                barrier_wait(v_full + last * 8, (done - 1) / 2 & 1);
                values_product(last);
                products_wait<0>();
                settle(acc);
                barrier_arrive(v_empty + last * 8);
            } else {
                barrier_arrive(q_empty);
            }
#pragma unroll
            for (i32 half = 0; half < 2; half++) {
                sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
                sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
                const float over = sum[half] == 0 ? 0.0f : 1 / sum[half];
                const i32 r = row + half * 8;
                if (r >= QUERIES) continue;
                if (HAS_LSE && lane % 4 == 0)
                    lse[L_ORIGIN + (i64)item.b * L_B + (i64)item.h * L_H + (i64)r * L_T] = sum[half] == 0 ? NEGATIVE_INFINITY : (top[half] == NEGATIVE_INFINITY ? 0.0f : top[half] * factor * LN2) + logf(sum[half]);
                T* to = out + O_ORIGIN + (i64)item.b * O_B + (i64)item.h * O_H + (i64)r * O_T;
#pragma unroll
                for (i32 n = 0; n < E / 8; n++) {
                    T* at = to + (i64)(n * 8 + lane % 4 * 2) * O_D;
                    const float x = acc[n * 4 + half * 2] * over, y = acc[n * 4 + half * 2 + 1] * over;
                    if (PAIRS) {
                        *(u32*)at = Arith<T>::pack(x, y);
                    } else {
                        at[0] = narrow<T>(x);
                        at[O_D] = narrow<T>(y);
                    }
                }
            }
        }
    }
}
