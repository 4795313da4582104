// Convolutions of half floats whose operands come in whole 16-byte accesses: a queue of STAGES tiles filled asynchronously, 32 summed elements each, on the tensor cores
// of eight warps, each 64 x 32 results. Operands lie channels last (LAST), or, for kernels of one element that walk places in order, as they are.

// The right operand: where column n (or summed element n of a weight's gradient) and its partner point.
struct Spot {
    i32 d, h, w;
    ix at;
};

#define ROW_CHANNELS (MODE == 1 ? Y_CHANNELS : X_CHANNELS)
#define ROW_GROUP (MODE == 1 ? Y_GROUP : X_GROUP)
#define ROW_PLACES (MODE == 1 ? Y_PLACES : X_PLACES)

__device__ __forceinline__ ix place(const Spot& a, const Spot& b) {
    if (!LAST) return a.at + b.at;
    i32 d = a.d + b.d, h = a.h + b.h, w = a.w + b.w;
#if MODE == 1
    if (STRIDE_D * STRIDE_H * STRIDE_W > 1) {
        if ((d | h | w) < 0 || d % STRIDE_D != 0 || h % STRIDE_H != 0 || w % STRIDE_W != 0) return -1;
        d /= STRIDE_D;
        h /= STRIDE_H;
        w /= STRIDE_W;
    }
    const bool inside = (u32)d < Y_D && (u32)h < Y_H && (u32)w < Y_W;
    return inside ? a.at + b.at + (ix)((d * Y_H + h) * Y_W + w) * Y_CHANNELS : (ix)-1;
#else
    const bool inside = (u32)d < X_D && (u32)h < X_H && (u32)w < X_W;
    return inside ? a.at + b.at + (ix)((d * X_H + h) * X_W + w) * X_CHANNELS : (ix)-1;
#endif
}

// A place of the result (of y for the forward pass and the weights' gradient, of x for the input's).
__device__ __forceinline__ Spot place_of(ix n) {
    Spot s;
#if MODE == 1
    const ix image = n / X_PLACES;
    const i32 p = (i32)(n - image * X_PLACES);
    s.d = p / (X_H * X_W) + PAD_D;
    s.h = p / X_W % X_H + PAD_H;
    s.w = p % X_W + PAD_W;
#else
    const ix image = n / Y_PLACES;
    const i32 p = (i32)(n - image * Y_PLACES);
    s.d = p / (Y_H * Y_W) * STRIDE_D - PAD_D;
    s.h = p / Y_W % Y_H * STRIDE_H - PAD_H;
    s.w = p % Y_W * STRIDE_W - PAD_W;
#endif
    s.at = image * ROW_CHANNELS * (ix)ROW_PLACES + (LAST ? 0 : p);
    return s;
}

// A kernel element and channel.
__device__ __forceinline__ Spot element_of(ix k, ix g) {
    Spot s;
    const i32 p = (i32)(k / ROW_GROUP), sign = MODE == 1 ? -1 : 1;
    const ix c = g * ROW_GROUP + (k - (ix)p * ROW_GROUP);
    s.d = sign * (p / (W_H * W_W) * DILATION_D);
    s.h = sign * (p / W_W % W_H * DILATION_H);
    s.w = sign * (p % W_W * DILATION_W);
    s.at = LAST ? c : c * ROW_PLACES;
    return s;
}
