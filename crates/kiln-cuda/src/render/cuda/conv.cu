// Convolutions as matrix products: rows are the channels of the result, columns its places (of a weight's gradient: its channels and kernel elements), and what
// is summed runs over the rest. The right operand is never made: its elements are found in x or dy.

// Where a column or a summed element points: coordinates that add up, and a place that does too.
struct Spot {
    i32 d, h, w;
    ix at;
};

// An element of the right operand: inside the input (or, walking strides backwards, on an output), or -1.
__device__ __forceinline__ ix place(const Spot& column, const Spot& depth) {
    const i32 d = column.d + depth.d, h = column.h + depth.h, w = column.w + depth.w;
#if MODE == 1
    if (STRIDE_D * STRIDE_H * STRIDE_W > 1) {
        const bool inside = d >= 0 && h >= 0 && w >= 0 && d % STRIDE_D == 0 && h % STRIDE_H == 0 && w % STRIDE_W == 0 && d / STRIDE_D < Y_D && h / STRIDE_H < Y_H && w / STRIDE_W < Y_W;
        return inside ? column.at + depth.at + (ix)((d / STRIDE_D * Y_H + h / STRIDE_H) * Y_W + w / STRIDE_W) : (ix)-1;
    }
    return (u32)d < Y_D && (u32)h < Y_H && (u32)w < Y_W ? column.at + depth.at + (ix)((d * Y_H + h) * Y_W + w) : (ix)-1;
#else
    return (u32)d < X_D && (u32)h < X_H && (u32)w < X_W ? column.at + depth.at + (ix)((d * X_H + h) * X_W + w) : (ix)-1;
#endif
}

// Column n and summed element k of group g.
__device__ __forceinline__ Spot column_of(ix n, ix g) {
    Spot s;
#if MODE == 0
    const ix image = n / Y_PLACES;
    const i32 p = (i32)(n - image * Y_PLACES);
    s.d = p / (Y_H * Y_W) * STRIDE_D - PAD_D;
    s.h = p / Y_W % Y_H * STRIDE_H - PAD_H;
    s.w = p % Y_W * STRIDE_W - PAD_W;
    s.at = (image * X_CHANNELS + g * X_GROUP) * (ix)X_PLACES;
#elif MODE == 1
    const ix image = n / X_PLACES;
    const i32 p = (i32)(n - image * X_PLACES);
    s.d = p / (X_H * X_W) + PAD_D;
    s.h = p / X_W % X_H + PAD_H;
    s.w = p % X_W + PAD_W;
    s.at = (image * Y_CHANNELS + g * Y_GROUP) * (ix)Y_PLACES;
#else
    const ix c = n / W_PLACES;
    const i32 p = (i32)(n - c * W_PLACES);
    s.d = p / (W_H * W_W) * DILATION_D;
    s.h = p / W_W % W_H * DILATION_H;
    s.w = p % W_W * DILATION_W;
    s.at = (g * X_GROUP + c) * (ix)X_PLACES;
#endif
    return s;
}

__device__ __forceinline__ Spot depth_of(ix k) {
    Spot s;
#if MODE == 2
    const ix image = k / Y_PLACES;
    const i32 p = (i32)(k - image * Y_PLACES);
    s.d = p / (Y_H * Y_W) * STRIDE_D - PAD_D;
    s.h = p / Y_W % Y_H * STRIDE_H - PAD_H;
    s.w = p % Y_W * STRIDE_W - PAD_W;
    s.at = image * X_CHANNELS * (ix)X_PLACES;
#else
    const ix c = k / W_PLACES;
    const i32 p = (i32)(k - c * W_PLACES), sign = MODE == 0 ? 1 : -1;
    s.d = sign * (p / (W_H * W_W) * DILATION_D);
    s.h = sign * (p / W_W % W_H * DILATION_H);
    s.w = sign * (p % W_W * DILATION_W);
    s.at = c * (ix)(MODE == 0 ? X_PLACES : Y_PLACES);
#endif
    return s;
}

// Row m of the left operand at summed element k: rows of weights, or of dy image by image.
__device__ __forceinline__ ix left_at(ix m, ix k, ix g) {
#if MODE == 2
    const ix image = k / Y_PLACES;
    return (image * Y_CHANNELS + g * ROWS + m) * (ix)Y_PLACES + (k - image * Y_PLACES);
#else
    return (g * ROWS + m) * (ix)DEPTH + k;
#endif
}
