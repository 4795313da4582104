// Zeros of the padding times what isn't finite: a library that leaves the padding out leaves out those NaNs too. Both kernels look for factors that aren't finite,
// hardly ever find one, and then write NaN where such a factor meets the padding. Spatial axes are three; missing leading ones have size 1.
typedef Arith<T>::type W;

struct Axis {
    i32 size, out, kernel, stride, dilation, lo;
    __device__ __forceinline__ i32 from(i32 place) const {
        return place <= 0 ? 0 : (place + stride - 1) / stride < out ? (place + stride - 1) / stride : out;
    }
    // Element k of the windows in first(k)..last(k) is inside, that of all others in the padding.
    __device__ __forceinline__ i32 first(i32 k) const { return from(lo - k * dilation); }
    __device__ __forceinline__ i32 last(i32 k) const { return from(size + lo - k * dilation); }
    __device__ __forceinline__ bool outside(i32 w, i32 k) const { return w < first(k) || w >= last(k); }
    // Whether any element of a window is in the padding.
    __device__ __forceinline__ bool touches(i32 w) const { return w < first(0) || w >= last(kernel - 1); }
};
__device__ constexpr Axis D = AXIS_D, H = AXIS_H, L = AXIS_W;

__device__ __forceinline__ bool is_finite(W v) { return v - v == (W)0; }
__device__ __forceinline__ T nan_of() { return narrow<T>((W)__uint_as_float(0x7fc00000u)); }
#if LAST
#define Y_AT(n, o, place) (((ix)(n) * PLANE + (place)) * OUTPUTS + (o))
#define W_AT(o, tap, c) (((ix)(o) * TAPS + (tap)) * INPUTS + (c))
#else
#define Y_AT(n, o, place) (((ix)(n) * OUTPUTS + (o)) * PLANE + (place))
#define W_AT(o, tap, c) (((ix)(o) * INPUTS + (c)) * TAPS + (tap))
#endif

#ifdef ENTRY_padding_of_result
extern "C" __global__ void __launch_bounds__(256) padding_of_result(const T* __restrict__ w, T* __restrict__ y) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)OUTPUTS * TAPS * INPUTS; at += (count)gridDim.x * 256) {
        if (is_finite(widen(w[at]))) continue;
        const i32 o = (i32)(at / ((count)TAPS * INPUTS));
        const i32 rest = (i32)(at - (count)o * TAPS * INPUTS);
        const i32 tap = LAST ? rest / INPUTS : rest % TAPS;
        const i32 kl = tap % L.kernel, kh = tap / L.kernel % H.kernel, kd = tap / (L.kernel * H.kernel);
        const i32 first = L.first(kl), last = L.last(kl);
        for (i32 n = 0; n < IMAGES; n++)
            for (i32 d = 0; d < D.out; d++)
                for (i32 h = 0; h < H.out; h++) {
                    const bool all = D.outside(d, kd) || H.outside(h, kh);
                    const i32 row = (d * H.out + h) * L.out;
                    for (i32 l = 0; l < L.out; l++) {
                        if (!all && l == first && first < last) l = last;
                        if (l < L.out) y[Y_AT(n, o, row + l)] = nan_of();
                    }
                }
    }
}
#endif

#ifdef ENTRY_padding_of_weight
extern "C" __global__ void __launch_bounds__(256) padding_of_weight(const T* __restrict__ y, T* __restrict__ w) {
    const i32 first = L.first(0), last = L.last(L.kernel - 1);
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)IMAGES * D.out * H.out * OUTPUTS; at += (count)gridDim.x * 256) {
#if LAST
        const i32 o = (i32)(at % OUTPUTS);
        count line = at / OUTPUTS;
        const i32 h = (i32)(line % H.out);
        line /= H.out;
        const i32 d = (i32)(line % D.out), n = (i32)(line / D.out);
#else
        const i32 h = (i32)(at % H.out);
        count line = at / H.out;
        const i32 d = (i32)(line % D.out);
        line /= D.out;
        const i32 o = (i32)(line % OUTPUTS), n = (i32)(line / OUTPUTS);
#endif
        const bool all = D.touches(d) || H.touches(h);
        const i32 row = (d * H.out + h) * L.out;
        for (i32 l = 0; l < L.out; l++) {
            if (!all && l == first && first < last) l = last;
            if (l >= L.out || is_finite(widen(y[Y_AT(n, o, row + l)]))) continue;
            for (i32 tap = 0; tap < TAPS; tap++) {
                const i32 kl = tap % L.kernel, kh = tap / L.kernel % H.kernel, kd = tap / (L.kernel * H.kernel);
                if (D.outside(d, kd) || H.outside(h, kh) || L.outside(l, kl))
                    for (i32 c = 0; c < INPUTS; c++) w[W_AT(o, tap, c)] = nan_of();
            }
        }
    }
}
#endif
