// [IMAGES, CHANNELS, PLACES] becomes [IMAGES, PLACES, CHANNELS] by tiles of 64 x 64 halves.
extern __shared__ uint4 shared_bytes[];
u16* tile = (u16*)shared_bytes;
u32 block = blockIdx.x;
const ix first_p = (ix)(block % TILES_P) * 64;
block /= TILES_P;
const ix first_c = (ix)(block % TILES_C) * 64, image = block / TILES_C;
const u16* from = (const u16*)FROM + image * CHANNELS * (ix)PLACES;
u32* to = (u32*)TO + image * CHANNELS * (ix)PLACES / 2;
#pragma unroll
for (i32 i = 0; i < 8; i++) {
    const i32 q = (i32)threadIdx.x + i * 256, p = q % 32 * 2, c = q / 32;
    if (first_c + c < CHANNELS) {
        const ix at = (first_c + c) * PLACES + first_p + p;
        if (PLACES % 2 == 0) {
            if (first_p + p < PLACES) *(u32*)(tile + c * 66 + p) = *(const u32*)(from + at);
        } else {
            if (first_p + p < PLACES) tile[c * 66 + p] = from[at];
            if (first_p + p + 1 < PLACES) tile[c * 66 + p + 1] = from[at + 1];
        }
    }
}
__syncthreads();
#pragma unroll
for (i32 i = 0; i < 8; i++) {
    const i32 q = (i32)threadIdx.x + i * 256, c = q % 32 * 2, p = q / 32;
    if (first_c + c < CHANNELS && first_p + p < PLACES) to[((first_p + p) * CHANNELS + first_c + c) / 2] = (u32)tile[c * 66 + p] | (u32)tile[(c + 1) * 66 + p] << 16;
}
