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
};

#define EACH(OUT)                                                                          \
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)PLANES * (OUT); \
         at += (count)gridDim.x * 256)

__device__ constexpr Axis D = AXIS_D, H = AXIS_H, L = AXIS_W;

#ifdef ENTRY_max_pool
extern "C" __global__ void __launch_bounds__(256) max_pool(const T* __restrict__ x, T* __restrict__ y, i64* __restrict__ indices) {
    EACH(Y_PLANE) {
        const count plane = at / Y_PLANE;
        const u32 rest = (u32)(at - plane * Y_PLANE);
        const i32 l = rest % L.out, h = rest / L.out % H.out, d = rest / (L.out * H.out);
        const T* from = x + (ix)plane * X_PLANE;
        W best = Number<W>::lowest();
        i32 where = -1;
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
                    const W v = widen<T>(from[p]);
                    if (where < 0 || Number<W>::beats(v, best)) {
                        best = v;
                        where = p;
                    }
                }
            }
        }
        y[at] = narrow<T>(best);
        if (HAS_INDICES) indices[at] = where;
    }
}
#endif

#ifdef ENTRY_avg_pool
extern "C" __global__ void __launch_bounds__(256) avg_pool(const T* __restrict__ x, T* __restrict__ y) {
    EACH(Y_PLANE) {
        const count plane = at / Y_PLANE;
        const u32 rest = (u32)(at - plane * Y_PLANE);
        const i32 l = rest % L.out, h = rest / L.out % H.out, d = rest / (L.out * H.out);
        const T* from = x + (ix)plane * X_PLANE;
        W sum = Number<W>::zero();
        for (i32 i = 0; i < D.kernel; i++) {
            const i32 pd = D.place(d, i);
            if (!D.inside(pd)) continue;
            for (i32 j = 0; j < H.kernel; j++) {
                const i32 ph = H.place(h, j);
                if (!H.inside(ph)) continue;
#pragma unroll
                for (i32 k = 0; k < L.kernel; k++) {
                    const i32 pl = L.place(l, k);
                    if (L.inside(pl)) sum = Number<W>::add(sum, widen<T>(from[(pd * H.size + ph) * L.size + pl]));
                }
            }
        }
        y[at] = narrow<T>(Number<W>::over(sum, D.counted(d) * H.counted(h) * L.counted(l)));
    }
}
#endif

// A result's own windows are asked whether their maximum lies there.
#ifdef ENTRY_max_pool_grad
extern "C" __global__ void __launch_bounds__(256) max_pool_grad(const T* __restrict__ dy, const i64* __restrict__ indices, T* __restrict__ dx, int* fault) {
    EACH(X_PLANE) {
        const count plane = at / X_PLANE;
        const u32 rest = (u32)(at - plane * X_PLANE);
        const i32 l = rest % L.size, h = rest / L.size % H.size, d = rest / (L.size * H.size);
        const ix from = (ix)plane * Y_PLANE;
        W sum = Number<W>::zero();
        for (i32 i = D.kernel - 1; i >= 0; i--) {
            const i32 wd = D.window(d, i);
            if (wd < 0) continue;
            for (i32 j = H.kernel - 1; j >= 0; j--) {
                const i32 wh = H.window(h, j);
                if (wh < 0) continue;
                for (i32 k = L.kernel - 1; k >= 0; k--) {
                    const i32 wl = L.window(l, k);
                    if (wl < 0) continue;
                    const ix w = from + (wd * H.out + wh) * L.out + wl;
                    const i64 chosen = indices[w];
                    if (chosen >= X_PLANE) report(fault, 3, 2, chosen, X_PLANE);
                    if (chosen == (i64)rest) sum = Number<W>::add(sum, widen<T>(dy[w]));
                }
            }
        }
        dx[at] = narrow<T>(sum);
    }
}
#endif

#ifdef ENTRY_avg_pool_grad
extern "C" __global__ void __launch_bounds__(256) avg_pool_grad(const T* __restrict__ dy, T* __restrict__ dx) {
    EACH(X_PLANE) {
        const count plane = at / X_PLANE;
        const u32 rest = (u32)(at - plane * X_PLANE);
        const i32 l = rest % L.size, h = rest / L.size % H.size, d = rest / (L.size * H.size);
        const ix from = (ix)plane * Y_PLANE;
        W sum = Number<W>::zero();
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
                    const W v = widen<T>(dy[from + (wd * H.out + wh) * L.out + wl]);
                    sum = Number<W>::add(sum, Number<W>::over(v, nh * L.counted(wl)));
                }
            }
        }
        dx[at] = narrow<T>(sum);
    }
}
#endif
