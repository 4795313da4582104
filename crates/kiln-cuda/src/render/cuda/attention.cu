// Attention: operands, scores and the parts that all variants share. X_B, X_H, X_T, X_D are an operand's steps, X_ORIGIN its first element.
typedef Arith<T>::type A;

#define NEGATIVE_INFINITY (-__uint_as_float(0x7f800000u))
// Keys that query `t` sees end here.
__device__ __forceinline__ i32 visible(i32 t) {
    return CAUSAL ? min((i32)KEYS, max(0, t + (i32)KEYS - (i32)QUERIES + 1)) : (i32)KEYS;
}

__device__ __forceinline__ float fast_tanh(float v) {
    return tanhf(v);
}
__device__ __forceinline__ double fast_tanh(double v) {
    return tanh(v);
}
__device__ __forceinline__ float exponential(float v) {
    return expf(v);
}
__device__ __forceinline__ double exponential(double v) {
    return exp(v);
}
__device__ __forceinline__ float logarithm(float v) {
    return logf(v);
}
__device__ __forceinline__ double logarithm(double v) {
    return log(v);
}

// Where the mask and the bias of a row (or of a column) of scores are.
struct Extras {
    const u8* mask;
    const T* bias;
    __device__ __forceinline__ Extras(const u8* m, const T* s, i32 b, i32 h, const u64* args) {
        mask = m + MASK_ORIGIN + (i64)b * MASK_B + (i64)h * MASK_H;
        bias = s + BIAS_ORIGIN + (i64)b * BIAS_B + (i64)h * BIAS_H;
    }
    // The score of a product and the slope of the soft cap there; hidden keys get minus infinity.
    template <typename X> __device__ __forceinline__ X score(X product, i32 t, i32 s, X& slope) const {
        if (s >= visible(t) || t >= QUERIES) return (X)NEGATIVE_INFINITY;
        if (HAS_MASK && mask[(i64)t * MASK_T + (i64)s * MASK_S]) return (X)NEGATIVE_INFINITY;
        X v = product * (X)SCALE;
        if (HAS_CAP) {
            const X r = fast_tanh(v * (X)(1.0 / CAP));
            v = (X)CAP * r;
            slope = 1 - r * r;
        }
        if (HAS_BIAS) v += (X)widen<T>(bias[(i64)t * BIAS_T + (i64)s * BIAS_S]);
        return v;
    }
};
