// Tiles of 128 x 128 results on the tensor cores of eight warps, each 64 x 32; 32 summed elements at a time, fetched one step ahead.
#define PITCH 40
#define WIDE_PITCH 136
const i32 t = threadIdx.x, lane = t % 32, warp = t / 32;
extern __shared__ uint4 shared_bytes[];
u16* left = (u16*)shared_bytes;
u16* right = left + 2 * 128 * PITCH;
const u32 left_base = shared_address(left), right_base = shared_address(right);
const u32 right_size = RIGHT_BY_DEPTH ? 128 * PITCH : 32 * WIDE_PITCH;
u32 block = blockIdx.x;
const ix m0 = (ix)(block % TILES_M) * 128;
block /= TILES_M;
const ix n0 = (ix)(block % TILES_N) * 128;
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
// A thread's share of a tile: of the right operand one column and 16 summed elements, or one summed element and 16 columns.
#if !RIGHT_BY_DEPTH && !RIGHT_VECTORS
const Spot own = column_of(n0 + t % 128, g);
const bool own_inside = n0 + t % 128 < COLUMNS;
#endif
u16 held_left[LEFT_VECTORS ? 1 : 16], held_right[RIGHT_VECTORS ? 1 : 16];

auto fetch = [&](ix k0, u32 stage) {
#if LEFT_VECTORS
#pragma unroll
    for (i32 i = 0; i < 2; i++) {
        const i32 q = i * 256 + t, k = q % 4 * 8, m = q / 4;
        const bool there = k0 + k < k_last && m0 + m < ROWS;
        copy_async_16(left_base + (stage * 128 * PITCH + m * PITCH + k) * 2, from_left + (there ? left_at(m0 + m, k0 + k, g) : (ix)0), there ? 16 : 0);
    }
#else
#pragma unroll
    for (i32 i = 0; i < 16; i++) {
        const i32 q = i * 256 + t, k = q % 32, m = q / 32;
        held_left[i] = k0 + k < k_last && m0 + m < ROWS ? from_left[left_at(m0 + m, k0 + k, g)] : (u16)0;
    }
#endif
#if RIGHT_VECTORS && RIGHT_BY_DEPTH
#pragma unroll
    for (i32 i = 0; i < 2; i++) {
        const i32 q = i * 256 + t, k = q % 4 * 8, n = q / 4;
        const bool there = k0 + k < k_last && n0 + n < COLUMNS;
        const ix at = there ? place(column_of(n0 + n, g), depth_of(k0 + k)) : (ix)0;
        copy_async_16(right_base + (stage * right_size + n * PITCH + k) * 2, from_right + at, there ? 16 : 0);
    }
#elif RIGHT_VECTORS
#pragma unroll
    for (i32 i = 0; i < 2; i++) {
        const i32 q = i * 256 + t, n = q % 16 * 8, k = q / 16;
        const bool there = k0 + k < k_last && n0 + n < COLUMNS;
        const ix at = there ? place(column_of(n0 + n, g), depth_of(k0 + k)) : (ix)0;
        copy_async_16(right_base + (stage * right_size + k * WIDE_PITCH + n) * 2, from_right + at, there ? 16 : 0);
    }
#elif RIGHT_BY_DEPTH
    const bool inside = k0 + lane < k_last;
    const Spot depth = depth_of(k0 + lane);
#pragma unroll
    for (i32 i = 0; i < 16; i++) {
        const ix n = n0 + i * 8 + warp;
        const ix at = inside && n < COLUMNS ? place(column_of(n, g), depth) : (ix)-1;
        held_right[i] = at >= 0 ? from_right[at] : (u16)0;
    }
#else
#pragma unroll
    for (i32 i = 0; i < 16; i++) {
        const ix k = k0 + i * 2 + t / 128;
        const ix at = own_inside && k < k_last ? place(own, depth_of(k)) : (ix)-1;
        held_right[i] = at >= 0 ? from_right[at] : (u16)0;
    }
#endif
    copy_commit();
};
auto keep = [&](u32 stage) {
#if !LEFT_VECTORS
#pragma unroll
    for (i32 i = 0; i < 16; i++) {
        const i32 q = i * 256 + t;
        left[stage * 128 * PITCH + q / 32 * PITCH + q % 32] = held_left[i];
    }
#endif
#if !RIGHT_VECTORS
#pragma unroll
    for (i32 i = 0; i < 16; i++) {
        if (RIGHT_BY_DEPTH) {
            right[stage * right_size + (i * 8 + warp) * PITCH + lane] = held_right[i];
        } else {
            right[stage * right_size + (i * 2 + t / 128) * WIDE_PITCH + t % 128] = held_right[i];
        }
    }
#endif
};

const i32 warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
if (k_first < k_last) {
    fetch(k_first, 0);
    keep(0);
}
copy_wait<0>();
__syncthreads();
u32 stage = 0;
for (ix k0 = k_first; k0 < k_last; k0 += 32) {
    const bool more = k0 + 32 < k_last;
    if (more) fetch(k0 + 32, stage ^ 1);
#pragma unroll
    for (i32 k = 0; k < 32; k += 16) {
        u32 a[4][4], b[2][4];
#pragma unroll
        for (i32 i = 0; i < 4; i++) load_matrices<false>(a[i], left_base + (stage * 128 * PITCH + (warp_m + i * 16) * PITCH + k) * 2 + left_place<PITCH>(lane));
#pragma unroll
        for (i32 j = 0; j < 2; j++) {
            if (RIGHT_BY_DEPTH) {
                load_matrices<false>(b[j], right_base + (stage * right_size + (warp_n + j * 16) * PITCH + k) * 2 + right_place<PITCH>(lane));
            } else {
                load_matrices<true>(b[j], right_base + (stage * right_size + k * WIDE_PITCH + warp_n + j * 16) * 2 + left_place<WIDE_PITCH>(lane));
            }
        }
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++) multiply<BRAIN>(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
    if (more) keep(stage ^ 1);
    copy_wait<0>();
    __syncthreads();
    stage ^= 1;
}
// Results go through shared memory, 64 rows at a time, so that neighbouring threads write neighbouring places.
float* tile = (float*)shared_bytes;
#pragma unroll
for (i32 half = 0; half < 2; half++) {
    if (warp / 4 == half) {
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++)
#pragma unroll
                for (i32 e = 0; e < 4; e++) tile[(i * 16 + lane / 4 + e / 2 * 8) * 132 + warp_n + j * 8 + lane % 4 * 2 + e % 2] = acc[i][j][e];
    }
    __syncthreads();
    for (i32 q = t; q < 64 * 128; q += 256) {
        const ix m = m0 + half * 64 + q / 128, n = n0 + q % 128;
        if (m < ROWS && n < COLUMNS) {
            const REGISTER value = tile[q / 128 * 132 + q % 128];
            STORE
        }
    }
    __syncthreads();
}
