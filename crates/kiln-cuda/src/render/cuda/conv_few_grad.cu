// A thread adds OUTPUTS x TAPS products over the places that it visits; then a block's threads add up theirs.
const i32 t = threadIdx.x, lane = t % 32, warp = t / 32;
extern __shared__ uint4 shared_bytes[];
ACC* sums = (ACC*)shared_bytes;
u32 block = blockIdx.x;
const ix m0 = (ix)(block % CHUNKS) * OUTPUTS;
block /= CHUNKS;
const ix g = block % GROUPS, split = block / GROUPS;
const ix k_first = split * SPLIT, k_last = k_first + SPLIT < (ix)DEPTH ? k_first + SPLIT : (ix)DEPTH;
// Padded so that a warp's lanes share the values evenly.
#define LINES ((OUTPUTS * TAPS + 31) / 32)
ACC acc[LINES][32];
#pragma unroll
for (i32 v = 0; v < LINES * 32; v++) acc[v / 32][v % 32] = (ACC)0;
for (ix k = k_first + t; k < k_last; k += 256) {
    const ix image = k / Y_PLACES;
    const i32 p = (i32)(k - image * Y_PLACES);
    ACC taps[TAPS];
    meet(RIGHT, image, p, g, taps);
#pragma unroll
    for (i32 o = 0; o < OUTPUTS; o++) {
        const ix m = m0 + o;
        const ix at = LAST ? (image * Y_PLACES + p) * (ix)Y_CHANNELS + g * ROWS + m : (image * Y_CHANNELS + g * ROWS + m) * (ix)Y_PLACES + p;
        const ACC dy = m < ROWS ? (ACC)up(LEFT[at]) : (ACC)0;
#pragma unroll
        for (i32 q = 0; q < TAPS; q++) acc[(o * TAPS + q) / 32][(o * TAPS + q) % 32] = acc[(o * TAPS + q) / 32][(o * TAPS + q) % 32] + dy * taps[q];
    }
}
#pragma unroll
for (i32 l = 0; l < LINES; l++) {
    share_out<16>(acc[l], lane);
    share_out<8>(acc[l], lane);
    share_out<4>(acc[l], lane);
    share_out<2>(acc[l], lane);
    share_out<1>(acc[l], lane);
    sums[(warp * LINES + l) * 32 + lane] = acc[l][0];
}
__syncthreads();
if (t < OUTPUTS * TAPS && m0 + t / TAPS < ROWS) {
    const ix m = m0 + t / TAPS, n = t % TAPS;
    ACC sum = 0;
#pragma unroll
    for (i32 w = 0; w < 8; w++) sum = sum + sums[w * LINES * 32 + t];
    const REGISTER value = (REGISTER)sum;
            STORE
}
