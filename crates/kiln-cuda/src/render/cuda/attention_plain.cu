// Attention and its gradient in plain arithmetic, for every float type, width and layout: tiles of 64 queries by 64 keys, results in chunks of WIDE columns.
struct View {
    const T* p;
    i64 row, col;
    i32 rows, cols;
    __device__ __forceinline__ A at(i32 r, i32 c) const { return r >= 0 && r < rows && c < cols ? widen<T>(p[r * row + c * col]) : (A)0; }
};

struct Tiles {
    A *sums, *left, *right;
    i32 t, tx, ty;
    __device__ __forceinline__ Tiles() {
        extern __shared__ uint4 shared_bytes[];
        sums = (A*)shared_bytes;
        left = sums + 64 * 65;
        right = left + 64 * 17;
        t = threadIdx.x;
        tx = t % 16;
        ty = t / 16;
    }
    // acc[i][j] = sum over columns of a[a0 + ty + 16 i] . b[b0 + tx + 16 j]
    __device__ __forceinline__ void products(A (&acc)[4][4], const View& a, i32 a0, const View& b, i32 b0) const {
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++) acc[i][j] = 0;
        for (i32 k0 = 0; k0 < a.cols; k0 += 16) {
            __syncthreads();
            for (i32 e = t; e < 64 * 16; e += 256) {
                left[e / 16 * 17 + e % 16] = a.at(a0 + e / 16, k0 + e % 16);
                right[e / 16 * 17 + e % 16] = b.at(b0 + e / 16, k0 + e % 16);
            }
            __syncthreads();
#pragma unroll
            for (i32 k = 0; k < 16; k++) {
                A x[4], y[4];
#pragma unroll
                for (i32 i = 0; i < 4; i++) x[i] = left[(ty + 16 * i) * 17 + k];
#pragma unroll
                for (i32 j = 0; j < 4; j++) y[j] = right[(tx + 16 * j) * 17 + k];
#pragma unroll
                for (i32 i = 0; i < 4; i++)
#pragma unroll
                    for (i32 j = 0; j < 4; j++) acc[i][j] += x[i] * y[j];
            }
        }
    }
    // acc[i][j] += sum over k of the tile in `sums` (or its transpose) by rows x0 + k of x, columns c0 on. Weights of zero leave out what they meet.
    template <bool TRANSPOSED> __device__ __forceinline__ void apply(A (&acc)[4][WIDE / 16], const View& x, i32 x0, i32 c0) const {
        for (i32 k0 = 0; k0 < 64; k0 += 8) {
            __syncthreads();
            for (i32 e = t; e < 8 * WIDE; e += 256) left[e] = x.at(x0 + k0 + e / WIDE, c0 + e % WIDE);
            __syncthreads();
#pragma unroll
            for (i32 k = 0; k < 8; k++) {
                A w[4], y[WIDE / 16];
#pragma unroll
                for (i32 i = 0; i < 4; i++) w[i] = TRANSPOSED ? sums[(k0 + k) * 65 + ty + 16 * i] : sums[(ty + 16 * i) * 65 + k0 + k];
#pragma unroll
                for (i32 j = 0; j < WIDE / 16; j++) y[j] = left[k * WIDE + tx + 16 * j];
#pragma unroll
                for (i32 i = 0; i < 4; i++)
#pragma unroll
                    for (i32 j = 0; j < WIDE / 16; j++) acc[i][j] += w[i] == 0 ? (A)0 : w[i] * y[j];
            }
        }
    }
};

#define VIEW(P, X, HEAD, ROWS, COLS) \
    View { P + X##_ORIGIN + (i64)b * X##_B + (i64)(HEAD) * X##_H, X##_T, X##_D, ROWS, COLS }

#ifdef ENTRY_attention_plain
extern "C" __global__ void __launch_bounds__(256) attention_plain(const T* q, const T* k, const T* v, const u8* mask, const T* bias, T* out, A* lse, const u64* args) {
    const Tiles tiles;
    A* maxima = tiles.right + 64 * 17;
    A *rows = maxima + 64, *factors = rows + 64;
    i32 block = blockIdx.x;
    const i32 c0 = block % CHUNKS * WIDE;
    block /= CHUNKS;
    const i32 t0 = (TILES_T - 1 - block % TILES_T) * 64;
    block /= TILES_T;
    const i32 h = block % HEADS, b = block / HEADS, g = h / (HEADS / GROUPS);
    const Extras extras(mask, bias, b, h, args);
    const View qs = VIEW(q, Q, h, QUERIES, D), ks = VIEW(k, K, g, KEYS, D), vs = VIEW(v, V, g, KEYS, E);
    const i32 row = tiles.t / 4, part = tiles.t % 4;
    if (tiles.t < 64) {
        maxima[tiles.t] = (A)NEGATIVE_INFINITY;
        rows[tiles.t] = 0;
    }
    A acc[4][WIDE / 16];
#pragma unroll
    for (i32 i = 0; i < 4; i++)
#pragma unroll
        for (i32 j = 0; j < WIDE / 16; j++) acc[i][j] = 0;
    const i32 end = visible(min(t0 + 63, (i32)QUERIES - 1));
    for (i32 s0 = 0; s0 < end; s0 += 64) {
        A s[4][4], slope;
        tiles.products(s, qs, t0, ks, s0);
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < 4; j++) {
                const i32 r = tiles.ty + 16 * i, c = tiles.tx + 16 * j;
                tiles.sums[r * 65 + c] = extras.score<A>(s[i][j], t0 + r, s0 + c, slope);
            }
        __syncthreads();
        // Four threads a row.
        A top = maxima[row];
        for (i32 c = part * 16; c < part * 16 + 16; c++) top = Number<A>::larger(top, tiles.sums[row * 65 + c]);
        top = Number<A>::larger(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = Number<A>::larger(top, __shfl_xor_sync(0xffffffffu, top, 2));
        A sum = 0;
        const bool none = top == (A)NEGATIVE_INFINITY;
        for (i32 c = part * 16; c < part * 16 + 16; c++) {
            const A p = none ? (A)0 : exponential(tiles.sums[row * 65 + c] - top);
            tiles.sums[row * 65 + c] = p;
            sum += p;
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (part == 0) {
            const A factor = none ? (A)1 : exponential(maxima[row] - top);
            factors[row] = factor;
            rows[row] = rows[row] * factor + sum;
            maxima[row] = top;
        }
        __syncthreads();
#pragma unroll
        for (i32 i = 0; i < 4; i++)
#pragma unroll
            for (i32 j = 0; j < WIDE / 16; j++) acc[i][j] *= factors[tiles.ty + 16 * i];
        tiles.apply<false>(acc, vs, s0, c0);
    }
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        const i32 r = tiles.ty + 16 * i;
        if (t0 + r >= QUERIES) continue;
        const bool none = maxima[r] == (A)NEGATIVE_INFINITY;
        const A over = none ? (A)0 : 1 / rows[r];
#pragma unroll
        for (i32 j = 0; j < WIDE / 16; j++) {
            const i32 c = c0 + tiles.tx + 16 * j;
            if (c < E) out[O_ORIGIN + (i64)b * O_B + (i64)h * O_H + (i64)(t0 + r) * O_T + (i64)c * O_D] = narrow<T>(none ? (A)0 : acc[i][j] * over);
        }
    }
    if (HAS_LSE && c0 == 0 && tiles.t < 64 && t0 + tiles.t < QUERIES) {
        const A top = maxima[tiles.t];
        lse[L_ORIGIN + (i64)b * L_B + (i64)h * L_H + (i64)(t0 + tiles.t) * L_T] = top == (A)NEGATIVE_INFINITY ? top : top + logarithm(rows[tiles.t]);
    }
}
#endif

#ifdef ENTRY_attention_delta
// Of every row: the product of the output and its gradient. One warp a row.
extern "C" __global__ void __launch_bounds__(256) attention_delta(const T* out, const T* dout, A* delta, const u64* args) {
    for (count at = (count)blockIdx.x * 8 + threadIdx.x / 32; at < (count)BATCH * HEADS * QUERIES; at += (count)gridDim.x * 8) {
        const i64 t = at % QUERIES, h = at / QUERIES % HEADS, b = at / QUERIES / HEADS;
        const T* x = out + O_ORIGIN + b * O_B + h * O_H + t * O_T;
        const T* y = dout + DO_ORIGIN + b * DO_B + h * DO_H + t * DO_T;
        A sum = 0;
        for (i32 d = threadIdx.x % 32; d < E; d += 32) sum += widen<T>(x[d * (i64)O_D]) * widen<T>(y[d * (i64)DO_D]);
#pragma unroll
        for (i32 d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (threadIdx.x % 32 == 0) delta[at] = sum;
    }
}
#endif

#ifdef GRADIENT
// Puts the probabilities of a tile (or, with SCORES, the gradients of its products) into `sums`.
template <bool SCORES>
__device__ __forceinline__ void weights(const Tiles& tiles, const Extras& extras, const View& qs, const View& ks, const View& vs, const View& dos, i32 t0, i32 s0,
                                        const A* lse, const A* delta) {
    A s[4][4], dp[4][4];
    tiles.products(s, qs, t0, ks, s0);
    if (SCORES) tiles.products(dp, dos, t0, vs, s0);
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        const i32 r = tiles.ty + 16 * i, t = t0 + r;
        const A log_sum = t < QUERIES ? lse[(i64)t * L_T] : (A)NEGATIVE_INFINITY;
        const A own = SCORES && t < QUERIES ? delta[t] : (A)0;
#pragma unroll
        for (i32 j = 0; j < 4; j++) {
            const i32 c = tiles.tx + 16 * j;
            A slope = 1;
            const A x = extras.score<A>(s[i][j], t, s0 + c, slope);
            A p = x == (A)NEGATIVE_INFINITY || log_sum == (A)NEGATIVE_INFINITY ? (A)0 : exponential(x - log_sum);
            if (SCORES) p = p == 0 ? (A)0 : p * (dp[i][j] - own) * slope * (A)SCALE;
            tiles.sums[r * 65 + c] = p;
        }
    }
}
#define COMMON                                                                                                                                  \
    const View qs = VIEW(q, Q, h, QUERIES, D), ks = VIEW(k, K, g, KEYS, D), vs = VIEW(v, V, g, KEYS, E), dos = VIEW(dout, DO, h, QUERIES, E); \
    const A* lses = lse + L_ORIGIN + (i64)b * L_B + (i64)h * L_H;                                                                              \
    const A* deltas = delta + ((i64)b * HEADS + h) * QUERIES;
#define ZERO                                   \
    A acc[4][WIDE / 16];                       \
    for (i32 i = 0; i < 4; i++)                \
        for (i32 j = 0; j < WIDE / 16; j++) acc[i][j] = 0;
#endif

#ifdef ENTRY_attention_dq
extern "C" __global__ void __launch_bounds__(256) attention_dq(const T* q, const T* k, const T* v, const T* dout, const A* lse, const A* delta, const u8* mask, const T* bias, T* dq, const u64* args) {
    const Tiles tiles;
    i32 block = blockIdx.x;
    const i32 c0 = block % CHUNKS * WIDE;
    block /= CHUNKS;
    const i32 t0 = block % TILES_T * 64;
    block /= TILES_T;
    const i32 h = block % HEADS, b = block / HEADS, g = h / (HEADS / GROUPS);
    const Extras extras(mask, bias, b, h, args);
    COMMON
    ZERO
    const i32 end = visible(min(t0 + 63, (i32)QUERIES - 1));
    for (i32 s0 = 0; s0 < end; s0 += 64) {
        weights<true>(tiles, extras, qs, ks, vs, dos, t0, s0, lses, deltas);
        tiles.apply<false>(acc, ks, s0, c0);
        __syncthreads();
    }
    for (i32 i = 0; i < 4; i++)
        for (i32 j = 0; j < WIDE / 16; j++) {
            const i32 t = t0 + tiles.ty + 16 * i, c = c0 + tiles.tx + 16 * j;
            if (t < QUERIES && c < D) dq[DQ_ORIGIN + (i64)b * DQ_B + (i64)h * DQ_H + (i64)t * DQ_T + (i64)c * DQ_D] = narrow<T>(acc[i][j]);
        }
}
#endif

#if defined(ENTRY_attention_dk) || defined(ENTRY_attention_dv)
// The gradient of keys or values: sums over the queries of all heads that share them.
#ifdef ENTRY_attention_dk
#define NAME attention_dk
#define KEYS_SIDE true
#define X_WIDTH D
#else
#define NAME attention_dv
#define KEYS_SIDE false
#define X_WIDTH E
#endif
extern "C" __global__ void __launch_bounds__(256) NAME(const T* q, const T* k, const T* v, const T* dout, const A* lse, const A* delta, const u8* mask, const T* bias, T* dx, const u64* args) {
    const Tiles tiles;
    i32 block = blockIdx.x;
    const i32 c0 = block % CHUNKS * WIDE;
    block /= CHUNKS;
    const i32 s0 = block % TILES_S * 64;
    block /= TILES_S;
    const i32 g = block % GROUPS, b = block / GROUPS;
    ZERO
    const i32 first = CAUSAL ? max(0, s0 - ((i32)KEYS - (i32)QUERIES)) / 64 * 64 : 0;
    for (i32 h = g * (HEADS / GROUPS); h < (g + 1) * (HEADS / GROUPS); h++) {
        const Extras extras(mask, bias, b, h, args);
        COMMON
        for (i32 t0 = first; t0 < QUERIES; t0 += 64) {
            weights<KEYS_SIDE>(tiles, extras, qs, ks, vs, dos, t0, s0, lses, deltas);
            tiles.apply<true>(acc, KEYS_SIDE ? qs : dos, t0, c0);
            __syncthreads();
        }
    }
    for (i32 i = 0; i < 4; i++)
        for (i32 j = 0; j < WIDE / 16; j++) {
            const i32 s = s0 + tiles.ty + 16 * i, c = c0 + tiles.tx + 16 * j;
            if (s < KEYS && c < X_WIDTH) dx[DX_ORIGIN + (i64)b * DX_B + (i64)g * DX_H + (i64)s * DX_T + (i64)c * DX_D] = narrow<T>(acc[i][j]);
        }
}
#endif
