// Tiles of SIDE_M x SIDE_N results by threads in 16 x 16, R_M x R_N results each.
const i32 t = threadIdx.x, tx = t % 16, ty = t / 16;
extern __shared__ uint4 shared_bytes[];
T* left = (T*)shared_bytes;
T* right = left + 16 * (SIDE_M + 1);
u32 block = blockIdx.x;
const ix n0 = (ix)(block % TILES_N) * SIDE_N;
block /= TILES_N;
const ix m0 = (ix)(block % TILES_M) * SIDE_M;
block /= TILES_M;
const ix g = block % GROUPS, split = block / GROUPS;
const ix k_first = split * SPLIT, k_last = k_first + SPLIT < (ix)DEPTH ? k_first + SPLIT : (ix)DEPTH;
ACC acc[R_M][R_N];
#pragma unroll
for (i32 i = 0; i < R_M; i++)
#pragma unroll
    for (i32 j = 0; j < R_N; j++) acc[i][j] = (ACC)0;
const Spot own = column_of(n0 + t % SIDE_N, g);
for (ix k0 = k_first; k0 < k_last; k0 += 16) {
    for (i32 q = t; q < 16 * SIDE_M; q += 256) {
        const i32 k = q % 16, m = q / 16;
        left[k * (SIDE_M + 1) + m] = k0 + k < k_last && m0 + m < ROWS ? LEFT[left_at(m0 + m, k0 + k, g)] : (T)0;
    }
#if MODE == 2
    const Spot depth = depth_of(k0 + t % 16);
    for (i32 q = t; q < 16 * SIDE_N; q += 256) {
        const i32 k = q % 16, n = q / 16;
        const ix at = k0 + k < k_last && n0 + n < COLUMNS ? place(column_of(n0 + n, g), depth) : (ix)-1;
        right[k * (SIDE_N + 1) + n] = at >= 0 ? RIGHT[at] : (T)0;
    }
#else
    for (i32 q = t; q < 16 * SIDE_N; q += 256) {
        const i32 n = q % SIDE_N, k = q / SIDE_N;
        const ix at = k0 + k < k_last && n0 + n < COLUMNS ? place(own, depth_of(k0 + k)) : (ix)-1;
        right[k * (SIDE_N + 1) + n] = at >= 0 ? RIGHT[at] : (T)0;
    }
#endif
    __syncthreads();
#pragma unroll
    for (i32 k = 0; k < 16; k++) {
        ACC a[R_M], b[R_N];
#pragma unroll
        for (i32 i = 0; i < R_M; i++) a[i] = (ACC)left[k * (SIDE_M + 1) + ty + 16 * i];
#pragma unroll
        for (i32 j = 0; j < R_N; j++) b[j] = (ACC)right[k * (SIDE_N + 1) + tx + 16 * j];
#pragma unroll
        for (i32 i = 0; i < R_M; i++)
#pragma unroll
            for (i32 j = 0; j < R_N; j++) acc[i][j] = acc[i][j] + a[i] * b[j];
    }
    __syncthreads();
}
#pragma unroll
for (i32 i = 0; i < R_M; i++)
#pragma unroll
    for (i32 j = 0; j < R_N; j++) {
        const ix m = m0 + ty + 16 * i, n = n0 + tx + 16 * j;
        if (m < ROWS && n < COLUMNS) {
            const REGISTER value = (REGISTER)acc[i][j];
            STORE
        }
    }
