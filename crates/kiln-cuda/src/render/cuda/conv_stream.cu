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

#if MODE == 1
// Column n as a place of x. CLASSED: places that meet the same kernel elements come together, so that a block leaves the others out.
struct Split {
    ix image;
    i32 d, h, w;
};
__device__ __forceinline__ Split split_place(ix n) {
    Split s;
#if CLASSED
    constexpr i32 ALL = STRIDE_D * STRIDE_H * STRIDE_W, DEEP = X_D / STRIDE_D, HIGH = X_H / STRIDE_H, BROAD = X_W / STRIDE_W;
    const i32 kind = (i32)(n / (COLUMNS / ALL));
    const ix rest = n - (ix)kind * (COLUMNS / ALL);
    s.image = rest / (DEEP * HIGH * BROAD);
    const i32 p = (i32)(rest - s.image * (DEEP * HIGH * BROAD));
    s.d = p / (HIGH * BROAD) * STRIDE_D + kind / (STRIDE_H * STRIDE_W);
    s.h = p / BROAD % HIGH * STRIDE_H + kind / STRIDE_W % STRIDE_H;
    s.w = p % BROAD * STRIDE_W + kind % STRIDE_W;
#else
    s.image = n / X_PLACES;
    const i32 p = (i32)(n - s.image * X_PLACES);
    s.d = p / (X_H * X_W);
    s.h = p / X_W % X_H;
    s.w = p % X_W;
#endif
    return s;
}
// The number of column n in the order of the result.
__device__ __forceinline__ ix place_number(ix n) {
    const Split s = split_place(n);
    return s.image * X_PLACES + (ix)((s.d * X_H + s.h) * X_W + s.w);
}
#endif

// Whether the kernel element of summed element k meets the columns from n on, which are of one class.
__device__ __forceinline__ bool useful(ix k, ix n) {
#if MODE == 1 && CLASSED
    const Split s = split_place(n);
    const i32 p = (i32)(k / ROW_GROUP);
    const i32 d = s.d + PAD_D - p / (W_H * W_W) * DILATION_D, h = s.h + PAD_H - p / W_W % W_H * DILATION_H, w = s.w + PAD_W - p % W_W * DILATION_W;
    return d % STRIDE_D == 0 && h % STRIDE_H == 0 && w % STRIDE_W == 0;
#else
    return true;
#endif
}

// A place of the result (of y for the forward pass and the weights' gradient, of x for the input's).
__device__ __forceinline__ Spot place_of(ix n) {
    Spot s;
#if MODE == 1
    const Split at = split_place(n);
    const ix image = at.image;
    const i32 p = (at.d * X_H + at.h) * X_W + at.w;
    s.d = at.d + PAD_D;
    s.h = at.h + PAD_H;
    s.w = at.w + PAD_W;
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
