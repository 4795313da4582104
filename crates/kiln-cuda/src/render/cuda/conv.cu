// Convolutions as matrix products: rows are the channels of the result, columns its places (of a weight's gradient: its channels and kernel elements), and what
// is summed runs over the rest. The right operand is never made: its elements are found in x or dy.

// Where a column or a summed element points: coordinates that add up, and a place that does too.
struct Spot {
    i32 d, h, w;
    ix at;
};

// Whether places add up: walking an input backwards with strides they don't.
#define ADDS_UP (MODE != 1 || STRIDE_D * STRIDE_H * STRIDE_W == 1)
// Whether the first axis is there at all.
#define DEEP_AXIS (X_D > 1 || Y_D > 1 || W_D > 1 || PAD_D > 0)
#if MODE == 1
#define SIZE_D Y_D
#define SIZE_H Y_H
#define SIZE_W Y_W
#else
#define SIZE_D X_D
#define SIZE_H X_H
#define SIZE_W X_W
#endif

// An element of the right operand, if there is one: inside the input (or, walking strides backwards, on an output).
__device__ __forceinline__ bool meets(const Spot& column, const Spot& depth, ix& at) {
    const i32 d = DEEP_AXIS ? column.d + depth.d : 0, h = column.h + depth.h, w = column.w + depth.w;
    at = column.at + depth.at;
    if (ADDS_UP) return (!DEEP_AXIS | ((u32)d < SIZE_D)) & ((u32)h < SIZE_H) & ((u32)w < SIZE_W);
    at += (ix)((d / STRIDE_D * Y_H + h / STRIDE_H) * Y_W + w / STRIDE_W);
    return d >= 0 && h >= 0 && w >= 0 && d % STRIDE_D == 0 && h % STRIDE_H == 0 && w % STRIDE_W == 0 && d / STRIDE_D < Y_D && h / STRIDE_H < Y_H && w / STRIDE_W < Y_W;
}

// The same, or -1.
__device__ __forceinline__ ix place(const Spot& column, const Spot& depth) {
    ix at;
    return meets(column, depth, at) ? at : (ix)-1;
}

// Coordinates with the place that they add to where places add up.
__device__ __forceinline__ Spot spot(i32 d, i32 h, i32 w, ix at) {
    Spot s;
    s.d = d;
    s.h = h;
    s.w = w;
    s.at = ADDS_UP ? at + (ix)((DEEP_AXIS ? d * SIZE_H * SIZE_W : 0) + h * SIZE_W + w) : at;
    return s;
}

// A spot that meets nothing.
__device__ __forceinline__ Spot nowhere() {
    Spot s;
    s.d = s.w = 0;
    s.h = -(1 << 30);
    s.at = 0;
    return s;
}

// Column n and summed element k of group g.
__device__ __forceinline__ Spot column_of(ix n, ix g) {
#if MODE == 0
    const ix image = n / Y_PLACES;
    const i32 p = (i32)(n - image * Y_PLACES);
    const ix at = (image * X_CHANNELS + g * X_GROUP) * (ix)X_PLACES;
    return spot(DEEP_AXIS ? p / (Y_H * Y_W) * STRIDE_D - PAD_D : 0, (DEEP_AXIS ? p / Y_W % Y_H : p / Y_W) * STRIDE_H - PAD_H, p % Y_W * STRIDE_W - PAD_W, at);
#elif MODE == 1
    const ix image = n / X_PLACES;
    const i32 p = (i32)(n - image * X_PLACES);
    const ix at = (image * Y_CHANNELS + g * Y_GROUP) * (ix)Y_PLACES;
    return spot(DEEP_AXIS ? p / (X_H * X_W) + PAD_D : 0, (DEEP_AXIS ? p / X_W % X_H : p / X_W) + PAD_H, p % X_W + PAD_W, at);
#else
    const ix c = n / W_PLACES;
    const i32 p = (i32)(n - c * W_PLACES);
    const ix at = (g * X_GROUP + c) * (ix)X_PLACES;
    return spot(DEEP_AXIS ? p / (W_H * W_W) * DILATION_D : 0, (DEEP_AXIS ? p / W_W % W_H : p / W_W) * DILATION_H, p % W_W * DILATION_W, at);
#endif
}

__device__ __forceinline__ Spot depth_of(ix k) {
#if MODE == 2
    const ix image = k / Y_PLACES;
    const i32 p = (i32)(k - image * Y_PLACES);
    const ix at = image * X_CHANNELS * (ix)X_PLACES;
    return spot(DEEP_AXIS ? p / (Y_H * Y_W) * STRIDE_D - PAD_D : 0, (DEEP_AXIS ? p / Y_W % Y_H : p / Y_W) * STRIDE_H - PAD_H, p % Y_W * STRIDE_W - PAD_W, at);
#else
    const ix c = k / W_PLACES;
    const i32 p = (i32)(k - c * W_PLACES), sign = MODE == 0 ? 1 : -1;
    const ix at = c * (ix)(MODE == 0 ? X_PLACES : Y_PLACES);
    return spot(DEEP_AXIS ? sign * (p / (W_H * W_W) * DILATION_D) : 0, sign * ((DEEP_AXIS ? p / W_W % W_H : p / W_W) * DILATION_H), sign * (p % W_W * DILATION_W), at);
#endif
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
