#define SIDE_M (64 * WARPS_M)
#define SIDE_N (256 / WARPS_M)
#define PITCH 40
#define LEFT_BYTES ((LEFT_BY_DEPTH ? SIDE_M * PITCH : 32 * (SIDE_M + 8)) * 2)
#define RIGHT_BYTES ((RIGHT_BY_DEPTH ? SIDE_N * PITCH : 32 * (SIDE_N + 8)) * 2)
extern __shared__ uint4 shared_bytes[];
const i32 t = threadIdx.x, lane = t % 32, warp = t / 32;
const u32 base = shared_address(shared_bytes);
u32 block = blockIdx.x;
const ix m0 = (ix)(block % TILES_M) * SIDE_M;
block /= TILES_M;
const ix n0 = (ix)(block % TILES_N) * SIDE_N;
block /= TILES_N;
const ix g = block % GROUPS, split = block / GROUPS;
const ix k_first = split * SPLIT, k_last = k_first + SPLIT < (ix)DEPTH ? k_first + SPLIT : (ix)DEPTH;
const u16* from_left = (const u16*)LEFT;
const u16* from_right = (const u16*)RIGHT;
float acc[4][4][4];
#pragma unroll
for (i32 i = 0; i < 4; i++)
#pragma unroll
    for (i32 j = 0; j < 4; j++)
#pragma unroll
        for (i32 e = 0; e < 4; e++) acc[i][j][e] = 0;
// What does not change from tile to tile: of the right operand a thread's columns.
#if RIGHT_BY_DEPTH
Spot own[SIDE_N / 64];
#pragma unroll
for (i32 i = 0; i < SIDE_N / 64; i++) {
    const ix n = n0 + t / 4 + i * 64;
    own[i] = MODE == 2 ? element_of(n, g) : place_of(n);
}
#else
const i32 own_column = t % (SIDE_N / 8) * 8;
const Spot own = MODE == 2 ? element_of(n0 + own_column, g) : place_of(n0 + own_column);
#endif

auto fetch = [&](ix k0, u32 stage) {
    const u32 left = base + stage * (LEFT_BYTES + RIGHT_BYTES), right = left + LEFT_BYTES;
#if LEFT_BY_DEPTH
    {
        const ix k = k0 + t % 4 * 8;
#if MODE == 2
        const ix image = k / Y_PLACES, along = (image * Y_CHANNELS + g * ROWS) * (ix)Y_PLACES + (k - image * Y_PLACES), row = Y_PLACES;
#else
        const ix along = g * ROWS * (ix)DEPTH + k, row = DEPTH;
#endif
#pragma unroll
        for (i32 i = 0; i < SIDE_M / 64; i++) {
            const i32 m = t / 4 + i * 64;
            const bool there = k < k_last && m0 + m < ROWS;
            copy_async_16(left + (u32)((m * PITCH + t % 4 * 8) * 2), from_left + (there ? along + (m0 + m) * row : (ix)0), there ? 16 : 0);
        }
    }
#else
#pragma unroll
    for (i32 i = 0; i < SIDE_M / 64; i++) {
        const i32 q = t + i * 256, m = q % (SIDE_M / 8) * 8, k = q / (SIDE_M / 8);
        const bool there = k0 + k < k_last && m0 + m < ROWS;
        copy_async_16(left + (u32)((k * (SIDE_M + 8) + m) * 2), from_left + (there ? (k0 + k) * Y_CHANNELS + g * ROWS + m0 + m : (ix)0), there ? 16 : 0);
    }
#endif
#if RIGHT_BY_DEPTH
    {
        const ix k = k0 + t % 4 * 8;
        const Spot depth = MODE == 2 ? place_of(k) : element_of(k, g);
#pragma unroll
        for (i32 i = 0; i < SIDE_N / 64; i++) {
            const i32 n = t / 4 + i * 64;
            const ix at = k < k_last && n0 + n < COLUMNS ? place(own[i], depth) : (ix)-1;
            copy_async_16(right + (u32)((n * PITCH + t % 4 * 8) * 2), from_right + (at >= 0 ? at : (ix)0), at >= 0 ? 16 : 0);
        }
    }
#else
#pragma unroll
    for (i32 i = 0; i < SIDE_N / 64; i++) {
        const i32 k = t / (SIDE_N / 8) + i * (256 / (SIDE_N / 8));
        const Spot depth = MODE == 2 ? place_of(k0 + k) : element_of(k0 + k, g);
        const ix at = k0 + k < k_last && n0 + own_column < COLUMNS ? place(own, depth) : (ix)-1;
        copy_async_16(right + (u32)((k * (SIDE_N + 8) + own_column) * 2), from_right + (at >= 0 ? at : (ix)0), at >= 0 ? 16 : 0);
    }
#endif
};

const i32 warp_m = warp % WARPS_M * 64, warp_n = warp / WARPS_M * 32;
// Steps of 32 summed elements, of which a block whose columns are of one class takes the useful ones.
#if MODE == 1 && CLASSED
const ix last_column = n0 + SIDE_N < COLUMNS ? n0 + SIDE_N - 1 : (ix)COLUMNS - 1, kind_size = COLUMNS / (STRIDE_D * STRIDE_H * STRIDE_W);
const bool one_class = n0 / kind_size == last_column / kind_size;
#else
const bool one_class = false;
#endif
auto from = [&](ix k) {
    while (one_class && k < k_last && !useful(k, n0)) k = (k / ROW_GROUP + 1) * ROW_GROUP;
    return k;
};
const ix start = from(k_first);
ix ahead = start;
#pragma unroll
for (i32 s = 0; s < STAGES - 1; s++) {
    if (ahead < k_last) {
        fetch(ahead, s);
        ahead = from(ahead + 32);
    }
    copy_commit();
}
u32 stage = 0, next = STAGES - 1;
for (ix k0 = start; k0 < k_last; k0 = from(k0 + 32)) {
    copy_wait<STAGES - 2>();
    __syncthreads();
    if (ahead < k_last) {
        fetch(ahead, next);
        ahead = from(ahead + 32);
    }
    copy_commit();
    const u32 left = base + stage * (LEFT_BYTES + RIGHT_BYTES), right = left + LEFT_BYTES;
#pragma unroll
    for (i32 k = 0; k < 32; k += 16) {
        u32 a[4][4], b[2][4];
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            if (LEFT_BY_DEPTH) {
                load_matrices<false>(a[i], left + (u32)(((warp_m + i * 16) * PITCH + k) * 2) + left_place<PITCH>(lane));
            } else {
                load_matrices<true>(a[i], left + (u32)((k * (SIDE_M + 8) + warp_m + i * 16) * 2) + right_place<SIDE_M + 8>(lane));
            }
        }
#pragma unroll
        for (i32 j = 0; j < 2; j++) {
            if (RIGHT_BY_DEPTH) {
                load_matrices<false>(b[j], right + (u32)(((warp_n + j * 16) * PITCH + k) * 2) + right_place<PITCH>(lane));
            } else {
                load_matrices<true>(b[j], right + (u32)((k * (SIDE_N + 8) + warp_n + j * 16) * 2) + left_place<SIDE_N + 8>(lane));
            }
        }
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++) multiply<BRAIN>(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    next = next + 1 == STAGES ? 0 : next + 1;
}
copy_wait<0>();
__syncthreads();
// Results go through shared memory, 64 rows at a time, so that neighbouring threads write neighbouring places.
float* tile = (float*)shared_bytes;
#pragma unroll
for (i32 part = 0; part < WARPS_M; part++) {
    if (warp % WARPS_M == part) {
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++)
#pragma unroll
                for (i32 e = 0; e < 4; e++) tile[(i * 16 + lane / 4 + e / 2 * 8) * (SIDE_N + 4) + warp_n + j * 8 + lane % 4 * 2 + e % 2] = acc[i][j][e];
    }
    __syncthreads();
#pragma unroll 4
    for (i32 q = t; q < 64 * SIDE_N; q += 256) {
        const ix m = m0 + part * 64 + q / SIDE_N, n = n0 + q % SIDE_N;
        if (m < ROWS && n < COLUMNS) {
            const REGISTER value = tile[q / SIDE_N * (SIDE_N + 4) + q % SIDE_N];
            STORE
        }
    }
    __syncthreads();
}
