// The elements of x that place `p` of an image's result meets, channel by channel; zeros outside.
__device__ __forceinline__ void meet(const T* x, ix image, i32 p, ix g, ACC (&taps)[TAPS]) {
    const i32 d0 = p / (Y_H * Y_W) * STRIDE_D - PAD_D, h0 = p / Y_W % Y_H * STRIDE_H - PAD_H, w0 = p % Y_W * STRIDE_W - PAD_W;
#pragma unroll
    for (i32 q = 0; q < TAPS; q++) {
        const i32 c = q / W_PLACES, e = q % W_PLACES;
        const i32 d = d0 + e / (W_H * W_W) * DILATION_D, h = h0 + e / W_W % W_H * DILATION_H, w = w0 + e % W_W * DILATION_W;
        const bool inside = (u32)d < X_D && (u32)h < X_H && (u32)w < X_W;
        const i32 place = (d * X_H + h) * X_W + w;
        const ix at = LAST ? (image * X_PLACES + place) * (ix)X_CHANNELS + g * X_GROUP + c : (image * X_CHANNELS + g * X_GROUP + c) * (ix)X_PLACES + place;
        taps[q] = inside ? (ACC)up(x[at]) : (ACC)0;
    }
}

// A step of adding up 32 values over a warp's lanes: one lane of each pair takes the upper half of the values, the other the lower. After steps of 16, 8, 4, 2 and 1
// lane l has the sum of value l first.
template <i32 HALF> __device__ __forceinline__ void share_out(ACC (&v)[32], i32 lane) {
    const bool upper = (lane & HALF) != 0;
#pragma unroll
    for (i32 i = 0; i < HALF; i++) {
        const ACC given = upper ? v[i] : v[i + HALF], kept = upper ? v[i + HALF] : v[i];
        v[i] = kept + __shfl_xor_sync(0xffffffffu, given, HALF);
    }
}
