// Pools over three trailing axes (missing leading ones have size 1), their gradients, and folds. One thread a result.
typedef Arith<T>::type W;

struct Axis {
    i32 size, out, kernel, stride, dilation, lo, hi;
    // Place in the input of element k of window w; outside where it lies in the padding.
    __device__ __forceinline__ i32 place(i32 w, i32 k) const { return w * stride + k * dilation - lo; }
    __device__ __forceinline__ bool inside(i32 at) const { return at >= 0 && at < size; }
    // Elements of window w that count in a mean.
    __device__ __forceinline__ u32 counted(i32 w) const {
        u32 n = 0;
        for (i32 k = 0; k < kernel; k++) {
            const i32 at = place(w, k);
            n += COUNT_PADDING ? at < size + hi : inside(at);
        }
        return n;
    }
    // The window whose element k is at a place of the input, or -1.
    __device__ __forceinline__ i32 window(i32 at, i32 k) const {
        const i32 from = at + lo - k * dilation;
        if (from < 0) return -1;
        const i32 w = from / stride;
        return w * stride == from && w < out ? w : -1;
    }
    // The only window that has a place where windows lie apart, or -1.
    __device__ __forceinline__ i32 only(i32 at) const {
        const i32 from = at + lo, w = from / stride;
        return from - w * stride < kernel && w < out ? w : -1;
    }
};

// `V` results of neighbouring channels: one access each of up to 16 bytes at a time.
template <typename E> struct alignas(sizeof(E) * V < 16 ? sizeof(E) * V : 16) Pack {
    E e[V];
};
template <typename E> __device__ __forceinline__ Pack<E> load(const E* at) { return *(const Pack<E>*)at; }
template <typename E> __device__ __forceinline__ void store(E* at, const Pack<E>& p) { *(Pack<E>*)at = p; }
#define LANES _Pragma("unroll") for (int v = 0; v < V; v++)

#define EACH(OUT)                                                                              \
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)PLANES * (OUT) / V; \
         at += (count)gridDim.x * 256)

__device__ constexpr Axis D = AXIS_D, H = AXIS_H, L = AXIS_W;

// A result's place in its plane, and where the plane of `SIZE` places begins: planes lie one after the other, or their channels are neighbours.
#if LAST
#define STEP (ix)CHANNELS
#define PLACE(OUT)                                                          \
    const count image = at / ((count)(CHANNELS / V) * (OUT));               \
    const count inner = at - image * ((count)(CHANNELS / V) * (OUT));       \
    const u32 rest = (u32)(inner / (CHANNELS / V));                         \
    const u32 channel = (u32)(inner - (count)rest * (CHANNELS / V)) * V;
#define START(SIZE) ((ix)image * (SIZE) * CHANNELS + channel)
#else
#define STEP (ix)1
#define PLACE(OUT)                    \
    const count plane = at / (OUT);   \
    const u32 rest = (u32)(at - plane * (OUT));
#define START(SIZE) ((ix)plane * (SIZE))
#endif

#ifdef ENTRY_max_pool
extern "C" __global__ void __launch_bounds__(256) max_pool(const T* __restrict__ x, T* __restrict__ y, i64* __restrict__ indices) {
    EACH(Y_PLANE) {
        PLACE(Y_PLANE)
        const i32 l = rest % L.out, h = rest / L.out % H.out, d = rest / (L.out * H.out);
        const T* from = x + START(X_PLANE);
        W best[V];
        i32 where[V];
        LANES best[v] = Number<W>::lowest(), where[v] = -1;
        for (i32 i = 0; i < D.kernel; i++) {
            const i32 pd = D.place(d, i);
            if (!D.inside(pd)) continue;
            for (i32 j = 0; j < H.kernel; j++) {
                const i32 ph = H.place(h, j);
                if (!H.inside(ph)) continue;
#pragma unroll
                for (i32 k = 0; k < L.kernel; k++) {
                    const i32 pl = L.place(l, k);
                    if (!L.inside(pl)) continue;
                    const i32 p = (pd * H.size + ph) * L.size + pl;
                    const Pack<T> row = load(from + p * STEP);
                    LANES {
                        const W x = widen<T>(row.e[v]);
                        if (where[v] < 0 || Number<W>::beats(x, best[v])) {
                            best[v] = x;
                            where[v] = p;
                        }
                    }
                }
            }
        }
        Pack<T> values;
        Pack<i64> places;
        LANES values.e[v] = narrow<T>(best[v]), places.e[v] = where[v];
        store(y + at * V, values);
        if (HAS_INDICES) store(indices + at * V, places);
    }
}
#endif

#ifdef ENTRY_avg_pool
extern "C" __global__ void __launch_bounds__(256) avg_pool(const T* __restrict__ x, T* __restrict__ y) {
    EACH(Y_PLANE) {
        PLACE(Y_PLANE)
        const i32 l = rest % L.out, h = rest / L.out % H.out, d = rest / (L.out * H.out);
        const T* from = x + START(X_PLANE);
        W sum[V];
        LANES sum[v] = Number<W>::zero();
        for (i32 i = 0; i < D.kernel; i++) {
            const i32 pd = D.place(d, i);
            if (!D.inside(pd)) continue;
            for (i32 j = 0; j < H.kernel; j++) {
                const i32 ph = H.place(h, j);
                if (!H.inside(ph)) continue;
#pragma unroll
                for (i32 k = 0; k < L.kernel; k++) {
                    const i32 pl = L.place(l, k);
                    if (!L.inside(pl)) continue;
                    const Pack<T> row = load(from + ((pd * H.size + ph) * L.size + pl) * STEP);
                    LANES sum[v] = Number<W>::add(sum[v], widen<T>(row.e[v]));
                }
            }
        }
        const u32 n = D.counted(d) * H.counted(h) * L.counted(l);
        Pack<T> means;
        LANES means.e[v] = narrow<T>(Number<W>::over(sum[v], n));
        store(y + at * V, means);
    }
}
#endif

// A result's own windows are asked whether their maximum lies there.
#ifdef ENTRY_max_pool_grad
extern "C" __global__ void __launch_bounds__(256) max_pool_grad(const T* __restrict__ dy, const i64* __restrict__ indices, T* __restrict__ dx, int* fault) {
    EACH(X_PLANE) {
        PLACE(X_PLANE)
        const i32 l = rest % L.size, h = rest / L.size % H.size, d = rest / (L.size * H.size);
        const ix from = START(Y_PLANE);
        W sum[V];
        LANES sum[v] = Number<W>::zero();
        auto add = [&](i32 wd, i32 wh, i32 wl) {
            const ix w = from + ((wd * H.out + wh) * L.out + wl) * STEP;
            const Pack<i64> chosen = load(indices + w);
            const Pack<T> row = load(dy + w);
            LANES {
                if (chosen.e[v] >= X_PLANE) report(fault, 3, 2, chosen.e[v], X_PLANE);
                if (chosen.e[v] == (i64)rest) sum[v] = Number<W>::add(sum[v], widen<T>(row.e[v]));
            }
        };
#if APART
        const i32 wd = D.only(d), wh = H.only(h), wl = L.only(l);
        if ((wd | wh | wl) >= 0) add(wd, wh, wl);
#else
        for (i32 i = D.kernel - 1; i >= 0; i--) {
            const i32 wd = D.window(d, i);
            if (wd < 0) continue;
            for (i32 j = H.kernel - 1; j >= 0; j--) {
                const i32 wh = H.window(h, j);
                if (wh < 0) continue;
                for (i32 k = L.kernel - 1; k >= 0; k--) {
                    const i32 wl = L.window(l, k);
                    if (wl >= 0) add(wd, wh, wl);
                }
            }
        }
#endif
        Pack<T> sums;
        LANES sums.e[v] = narrow<T>(sum[v]);
        store(dx + at * V, sums);
    }
}
#endif

#ifdef ENTRY_avg_pool_grad
extern "C" __global__ void __launch_bounds__(256) avg_pool_grad(const T* __restrict__ dy, T* __restrict__ dx) {
    EACH(X_PLANE) {
        PLACE(X_PLANE)
        const i32 l = rest % L.size, h = rest / L.size % H.size, d = rest / (L.size * H.size);
        const ix from = START(Y_PLANE);
        W sum[V];
        LANES sum[v] = Number<W>::zero();
        for (i32 i = D.kernel - 1; i >= 0; i--) {
            const i32 wd = D.window(d, i);
            if (wd < 0) continue;
            const u32 nd = D.counted(wd);
            for (i32 j = H.kernel - 1; j >= 0; j--) {
                const i32 wh = H.window(h, j);
                if (wh < 0) continue;
                const u32 nh = nd * H.counted(wh);
                for (i32 k = L.kernel - 1; k >= 0; k--) {
                    const i32 wl = L.window(l, k);
                    if (wl < 0) continue;
                    const Pack<T> row = load(dy + from + ((wd * H.out + wh) * L.out + wl) * STEP);
                    const u32 n = nh * L.counted(wl);
                    LANES sum[v] = Number<W>::add(sum[v], Number<W>::over(widen<T>(row.e[v]), n));
                }
            }
        }
        Pack<T> sums;
        LANES sums.e[v] = narrow<T>(sum[v]);
        store(dx + at * V, sums);
    }
}
#endif
