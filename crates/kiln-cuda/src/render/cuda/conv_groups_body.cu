// The same on warpgroups: one fetches tiles of 64 summed elements, two multiply 64 x WIDTH results each, GROUPS_M by GROUPS_N of them.
#define SIDE_M (64 * GROUPS_M)
#define SIDE_N (WIDTH * GROUPS_N)
#define LEFT_BYTES (SIDE_M * 128)
#define STAGE_BYTES ((SIDE_M + SIDE_N) * 128)
extern __shared__ uint4 shared_bytes[];
const i32 group = threadIdx.x / 128, t = threadIdx.x % 128;
const u32 base = shared_address(shared_bytes), tiles_at = (base + 1024 + SIDE_N * 32 + 1023) & ~1023u;
const u32 full = base, empty = base + 8 * STAGES;
// Where columns point, for the thread that fetches them.
Spot* spots = (Spot*)((u8*)shared_bytes + 1024);
u32 block = blockIdx.x;
const ix m0 = (ix)(block % TILES_M) * SIDE_M;
block /= TILES_M;
const ix n0 = (ix)(block % TILES_N) * SIDE_N;
block /= TILES_N;
const ix g = block % GROUPS, split = block / GROUPS;
const ix k_first = split * SPLIT, k_last = k_first + SPLIT < (ix)DEPTH ? k_first + SPLIT : (ix)DEPTH;
const i32 steps = k_first < k_last ? (i32)((k_last - k_first + 63) / 64) : 0;
if (threadIdx.x == 0) {
    for (i32 i = 0; i < STAGES; i++) {
        barrier_init(full + i * 8, 128);
        barrier_init(empty + i * 8, 256);
    }
    fence_barriers();
}
#if RIGHT_BY_DEPTH
for (i32 n = threadIdx.x; n < SIDE_N; n += 384) spots[n] = MODE == 2 ? element_of(n0 + n, g) : place_of(n0 + n);
#endif
__syncthreads();
if (group == 0) {
    registers_down<40>();
    const u16* from_left = (const u16*)LEFT;
    const u16* from_right = (const u16*)RIGHT;
#if !RIGHT_BY_DEPTH
    const i32 own_column = t % (SIDE_N / 8) * 8;
    const Spot own = MODE == 2 ? element_of(n0 + own_column, g) : place_of(n0 + own_column);
#endif
    Queue queue;
    queue.last = NOTHING;
    i32 stage = 0;
    u32 parity = 1;
    for (i32 step = 0; step < steps; step++) {
        const ix k0 = k_first + (ix)step * 64;
        queue.room(empty + stage * 8, parity);
        const u32 left = tiles_at + (u32)(stage * STAGE_BYTES), right = left + LEFT_BYTES;
        const ix k = k0 + t % 8 * 8;
#if LEFT_BY_DEPTH
        {
#if MODE == 2
            const ix image = k / Y_PLACES, along = (image * Y_CHANNELS + g * ROWS) * (ix)Y_PLACES + (k - image * Y_PLACES), row = Y_PLACES;
#else
            const ix along = g * ROWS * (ix)DEPTH + k, row = DEPTH;
#endif
            u32 to = left + piece(t / 8, t % 8);
#pragma unroll 4
            for (i32 i = 0; i < SIDE_M / 16; i++) {
                const ix m = m0 + t / 8 + i * 16;
                const bool there = k < k_last && m < ROWS;
                copy_async_16(to, from_left + (there ? along + m * row : (ix)0), there ? 16 : 0);
                to += 16 * 128;
            }
        }
#else
#pragma unroll 4
        for (i32 i = 0; i < SIDE_M / 16; i++) {
            const i32 m = t % (SIDE_M / 8) * 8, d = t / (SIDE_M / 8) + i * (1024 / SIDE_M);
            const bool there = k0 + d < k_last && m0 + m < ROWS;
            copy_async_16(left + (u32)(m / 64 * 8192) + piece(d, m % 64 / 8), from_left + (there ? (k0 + d) * Y_CHANNELS + g * ROWS + m0 + m : (ix)0), there ? 16 : 0);
        }
#endif
#if RIGHT_BY_DEPTH
        {
            const Spot depth = MODE == 2 ? place_of(k) : element_of(k, g);
            u32 to = right + piece(t / 8, t % 8);
#pragma unroll 4
            for (i32 i = 0; i < SIDE_N / 16; i++) {
                const i32 n = t / 8 + i * 16;
                const ix at = k < k_last && n0 + n < COLUMNS ? place(spots[n], depth) : (ix)-1;
                copy_async_16(to, from_right + (at >= 0 ? at : (ix)0), at >= 0 ? 16 : 0);
                to += 16 * 128;
            }
        }
#else
#pragma unroll 4
        for (i32 i = 0; i < SIDE_N / 16; i++) {
            const i32 d = t / (SIDE_N / 8) + i * (1024 / SIDE_N);
            const Spot depth = MODE == 2 ? place_of(k0 + d) : element_of(k0 + d, g);
            const ix at = k0 + d < k_last && n0 + own_column < COLUMNS ? place(own, depth) : (ix)-1;
            copy_async_16(right + (u32)(own_column / 64 * 8192) + piece(d, own_column % 64 / 8), from_right + (at >= 0 ? at : (ix)0), at >= 0 ? 16 : 0);
        }
#endif
        queue.started(full + stage * 8);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
    queue.announce<0>();
} else {
    registers_up<232>();
    const i32 me = group - 1, lane = t % 32, group_m = me % GROUPS_M, group_n = me / GROUPS_M;
    float acc[WIDTH / 2];
#pragma unroll
    for (i32 i = 0; i < WIDTH / 2; i++) acc[i] = 0;
    i32 stage = 0, before = 0;
    u32 parity = 0;
    for (i32 step = 0; step < steps; step++) {
        barrier_wait(full + stage * 8, parity);
        const u32 left = tiles_at + (u32)(stage * STAGE_BYTES + group_m * 8192), right = tiles_at + (u32)(stage * STAGE_BYTES + LEFT_BYTES + group_n * WIDTH * 128);
        products_begin();
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            multiply_tiles<LEFT_BY_DEPTH != 0, RIGHT_BY_DEPTH != 0>(acc, operand(left + k * (LEFT_BY_DEPTH ? 32 : 2048), LEFT_BY_DEPTH ? 16 : 8192),
                                                                    operand(right + k * (RIGHT_BY_DEPTH ? 32 : 2048), RIGHT_BY_DEPTH ? 16 : 8192));
        }
        products_commit();
        products_wait<1>();
        if (step > 0) barrier_arrive(empty + before * 8);
        before = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
    }
    products_wait<0>();
    settle(acc);
    // All products are done: results go through shared memory, so that neighbouring threads write neighbouring places.
    named_barrier_sync(1, 256);
    float* tile = (float*)((u8*)shared_bytes + (tiles_at - base)) + me * 64 * (WIDTH + 4);
#pragma unroll
    for (i32 n = 0; n < WIDTH / 8; n++)
#pragma unroll
        for (i32 e = 0; e < 4; e++) tile[(t / 32 * 16 + lane / 4 + e / 2 * 8) * (WIDTH + 4) + n * 8 + lane % 4 * 2 + e % 2] = acc[n * 4 + e];
    named_barrier_sync(2 + me, 128);
#pragma unroll 4
    for (i32 q = t; q < 64 * WIDTH; q += 128) {
        const ix m = m0 + group_m * 64 + q / WIDTH, n = n0 + group_n * WIDTH + q % WIDTH;
        if (m < ROWS && n < COLUMNS) {
            const REGISTER value = tile[q / WIDTH * (WIDTH + 4) + q % WIDTH];
            STORE
        }
    }
}
