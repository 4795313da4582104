// A thread keeps what its place meets and makes PER results of it. Output `share + SHARES * j` is the j-th of a thread; the weights of a thread lie next to each other.
const i32 t = threadIdx.x, share = t % SHARES;
extern __shared__ uint4 shared_bytes[];
ACC* weights = (ACC*)shared_bytes;
u32 block = blockIdx.x;
const ix m0 = (ix)(block % CHUNKS) * (SHARES * PER);
block /= CHUNKS;
const ix g = block % GROUPS, n = (ix)(block / GROUPS) * (256 / SHARES) + t / SHARES;
for (i32 q = t; q < TAPS * SHARES * PER; q += 256) {
    const i32 o = q % (SHARES * PER), k = q / (SHARES * PER);
    const ix m = m0 + o / PER + SHARES * (o % PER);
    const ix at = LAST ? ((g * ROWS + m) * W_PLACES + k % W_PLACES) * (ix)X_GROUP + k / W_PLACES : (g * ROWS + m) * (ix)TAPS + k;
    weights[q] = m < ROWS ? (ACC)up(LEFT[at]) : (ACC)0;
}
__syncthreads();
if (n < COLUMNS) {
    const ix image = n / Y_PLACES;
    ACC taps[TAPS];
    meet(RIGHT, image, (i32)(n - image * Y_PLACES), g, taps);
#pragma unroll
    for (i32 j = 0; j < PER; j += 4) {
        ACC acc[4] = {0, 0, 0, 0};
#pragma unroll
        for (i32 k = 0; k < TAPS; k++) {
            const vec<ACC, 4> w = ldv<ACC, 4>(weights + (k * SHARES + share) * PER + j);
#pragma unroll
            for (i32 i = 0; i < 4; i++) acc[i] = acc[i] + taps[k] * w.at(i);
        }
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            const ix m = m0 + share + SHARES * (j + i);
            if (m < ROWS) {
                const REGISTER value = (REGISTER)acc[i];
            STORE
            }
        }
    }
}
