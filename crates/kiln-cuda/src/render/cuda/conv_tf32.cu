// Tiles of SIDE_M x SIDE_N results of 32-bit floats on the tensor cores of eight warps; DEEP summed elements at a time, fetched one step ahead.
// With PARTS of 2 a factor is kept as a number of 11 bits and what is left of it, of which the product of two rests is left out (2^-24), and what a step adds up is added to the
// sums in ordinary arithmetic: tensor cores do not round to the nearest. A block that met what cannot be split computes its results element by element.
#define DEEP 32
#define PITCH 36
#define WIDE_PITCH (SIDE_N + 8)
#define TILES_I (SIDE_M / WARPS_M / 16)
#define TILES_J (SIDE_N / (8 / WARPS_M) / 8)
#define OF_LEFT (SIDE_M * DEEP / 256)
#define OF_RIGHT (SIDE_N * DEEP / 256)
const i32 t = threadIdx.x, lane = t % 32, warp = t / 32;
extern __shared__ uint4 shared_bytes[];
const u32 LEFT_SIZE = SIDE_M * PITCH, RIGHT_SIZE = MODE == 2 ? SIDE_N * PITCH : DEEP * WIDE_PITCH;
float* left = (float*)shared_bytes;
float* right = left + 2 * LEFT_SIZE;
// Where the summed elements of the next steps point, or (in a weight's gradient) the columns.
Spot* spots = (Spot*)(right + 2 * RIGHT_SIZE);
u32 block = blockIdx.x;
const ix m0 = (ix)(block % TILES_M) * SIDE_M;
block /= TILES_M;
const ix n0 = (ix)(block % TILES_N) * SIDE_N;
block /= TILES_N;
const ix g = block % GROUPS, split = block / GROUPS;
const ix k_first = split * SPLIT, k_last = k_first + SPLIT < (ix)DEPTH ? k_first + SPLIT : (ix)DEPTH;
const i32 steps = k_first < k_last ? (i32)((k_last - k_first + DEEP - 1) / DEEP) : 0;
#if MODE == 2
for (i32 n = t; n < SIDE_N; n += 256) spots[n] = n0 + n < COLUMNS ? column_of(n0 + n, g) : nowhere();
auto point = [&](i32) {};
#else
const Spot own = n0 + t % SIDE_N < COLUMNS ? column_of(n0 + t % SIDE_N, g) : nowhere();
auto point = [&](i32 step) {
    const ix k = k_first + step * DEEP + t;
    if (t < DEEP) spots[step % 2 * DEEP + t] = k < k_last ? depth_of(k) : nowhere();
};
#endif
bool odd = false;
float held_left[OF_LEFT], held_right[OF_RIGHT];
auto fetch = [&](i32 step) {
    const ix k0 = k_first + step * DEEP;
    const bool deep = k0 + lane < k_last;
    const ix first = deep ? left_at(m0 + warp, k0 + lane, g) : (ix)0;
#pragma unroll
    for (i32 i = 0; i < OF_LEFT; i++) held_left[i] = load_if(LEFT + first + 8 * i * (ix)(MODE == 2 ? Y_PLACES : DEPTH), deep & (m0 + warp + 8 * i < ROWS));
#if MODE == 2
    const Spot depth = deep ? depth_of(k0 + lane) : nowhere();
#pragma unroll
    for (i32 i = 0; i < OF_RIGHT; i++) {
        ix at;
        const bool there = meets(spots[warp + 8 * i], depth, at);
        held_right[i] = load_if(RIGHT + at, there);
    }
#else
#pragma unroll
    for (i32 i = 0; i < OF_RIGHT; i++) {
        const i32 k = t / SIDE_N + 256 / SIDE_N * i;
        ix at;
        const bool there = meets(own, spots[step % 2 * DEEP + k], at);
        held_right[i] = load_if(RIGHT + at, there);
    }
#endif
};
auto keep = [&](i32 step) {
    float *to_left = left + step % 2 * LEFT_SIZE, *to_right = right + step % 2 * RIGHT_SIZE;
#pragma unroll
    for (i32 i = 0; i < OF_LEFT; i++) {
        to_left[(warp + 8 * i) * PITCH + lane] = held_left[i];
        odd |= is_odd(held_left[i]);
    }
#pragma unroll
    for (i32 i = 0; i < OF_RIGHT; i++) {
        to_right[MODE == 2 ? (warp + 8 * i) * PITCH + lane : (t / SIDE_N + 256 / SIDE_N * i) * WIDE_PITCH + t % SIDE_N] = held_right[i];
        odd |= is_odd(held_right[i]);
    }
};
float acc[TILES_I][TILES_J][4];
#pragma unroll
for (i32 i = 0; i < TILES_I; i++)
#pragma unroll
    for (i32 j = 0; j < TILES_J; j++)
#pragma unroll
        for (i32 e = 0; e < 4; e++) acc[i][j][e] = 0;
const i32 warp_m = warp % WARPS_M * (TILES_I * 16), warp_n = warp / WARPS_M * (TILES_J * 8);
point(0);
__syncthreads();
if (steps > 0) {
    fetch(0);
    keep(0);
}
point(1);
__syncthreads();
for (i32 step = 0; step < steps; step++) {
    if (step + 1 < steps) fetch(step + 1);
    const float* a_tile = left + step % 2 * LEFT_SIZE + (warp_m + lane / 4) * PITCH + lane % 4;
    const float* b_tile = right + step % 2 * RIGHT_SIZE + (MODE == 2 ? (warp_n + lane / 4) * PITCH + lane % 4 : lane % 4 * WIDE_PITCH + warp_n + lane / 4);
    const i32 across = MODE == 2 ? 8 * PITCH : 8, deeper = MODE == 2 ? 1 : WIDE_PITCH;
#if PARTS == 2
    float sum[TILES_I][TILES_J][4];
#pragma unroll
    for (i32 i = 0; i < TILES_I; i++)
#pragma unroll
        for (i32 j = 0; j < TILES_J; j++)
#pragma unroll
            for (i32 e = 0; e < 4; e++) sum[i][j][e] = 0;
#endif
#pragma unroll
    for (i32 k = 0; k < DEEP; k += 8) {
        float b[TILES_J][2];
#if PARTS == 2
        float b_rest[TILES_J][2];
#endif
#pragma unroll
        for (i32 j = 0; j < TILES_J; j++)
#pragma unroll
            for (i32 e = 0; e < 2; e++) {
                const float v = b_tile[j * across + (k + e * 4) * deeper];
                b[j][e] = to_tf32(v);
#if PARTS == 2
                b_rest[j][e] = v - b[j][e];
#endif
            }
#pragma unroll
        for (i32 i = 0; i < TILES_I; i++) {
            float a[4];
#if PARTS == 2
            float a_rest[4];
#endif
#pragma unroll
            for (i32 e = 0; e < 4; e++) {
                const float v = a_tile[(i * 16 + e % 2 * 8) * PITCH + k + e / 2 * 4];
                a[e] = to_tf32(v);
#if PARTS == 2
                a_rest[e] = v - a[e];
#endif
            }
#if PARTS == 2
#pragma unroll
            for (i32 j = 0; j < TILES_J; j++) multiply_tf32(sum[i][j], a_rest, b[j]);
#pragma unroll
            for (i32 j = 0; j < TILES_J; j++) multiply_tf32(sum[i][j], a, b_rest[j]);
#pragma unroll
            for (i32 j = 0; j < TILES_J; j++) multiply_tf32(sum[i][j], a, b[j]);
#else
#pragma unroll
            for (i32 j = 0; j < TILES_J; j++) multiply_tf32(acc[i][j], a, b[j]);
#endif
        }
    }
#if PARTS == 2
#pragma unroll
    for (i32 i = 0; i < TILES_I; i++)
#pragma unroll
        for (i32 j = 0; j < TILES_J; j++)
#pragma unroll
            for (i32 e = 0; e < 4; e++) acc[i][j][e] = acc[i][j][e] + sum[i][j][e];
#endif
    if (step + 1 < steps) keep(step + 1);
    point(step + 2);
    __syncthreads();
}
const bool plain = __syncthreads_or(odd);
// Results go through shared memory, so that neighbouring threads write neighbouring places.
float* tile = (float*)shared_bytes;
#pragma unroll
for (i32 i = 0; i < TILES_I; i++)
#pragma unroll
    for (i32 j = 0; j < TILES_J; j++)
#pragma unroll
        for (i32 e = 0; e < 4; e++) tile[(warp_m + i * 16 + lane / 4 + e / 2 * 8) * (SIDE_N + 4) + warp_n + j * 8 + lane % 4 * 2 + e % 2] = acc[i][j][e];
__syncthreads();
for (i32 q = t; q < SIDE_M * SIDE_N; q += 256) {
    const ix m = m0 + q / SIDE_N, n = n0 + q % SIDE_N;
    if (m < ROWS && n < COLUMNS) {
        REGISTER value = tile[q / SIDE_N * (SIDE_N + 4) + q % SIDE_N];
        if (plain) {
            const Spot column = column_of(n, g);
            value = 0;
            for (ix k = k_first; k < k_last; k++) {
                const ix at = place(column, depth_of(k));
                value = value + LEFT[left_at(m, k, g)] * (at >= 0 ? RIGHT[at] : 0.0f);
            }
        }
            STORE
    }
}
