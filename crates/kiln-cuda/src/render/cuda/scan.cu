// Running reductions over the middle of [OUTER, LENGTH, INNER], cut into CHUNKS pieces of CHUNK elements along the axis.
typedef Arith<T>::type W;

__device__ __forceinline__ W identity() {
#if OP == 0
    return Number<W>::zero();
#elif OP == 1
    return Number<W>::one();
#elif OP == 2
    return Number<W>::lowest();
#else
    return Number<W>::highest();
#endif
}

__device__ __forceinline__ W step(W a, W b) {
#if OP == 0
    return Number<W>::add(a, b);
#elif OP == 1
    return Number<W>::mul(a, b);
#elif OP == 2
    return Number<W>::larger(a, b);
#else
    return Number<W>::smaller(a, b);
#endif
}

// The value of the lane `d` below; only meaningful where there is one.
__device__ __forceinline__ W below(W v, u32 d) {
    union {
        W value;
        u32 words[(sizeof(W) + 3) / 4];
    } a;
    a.words[0] = 0;
    a.value = v;
#pragma unroll
    for (u32 i = 0; i < (sizeof(W) + 3) / 4; i++) a.words[i] = __shfl_up_sync(0xffffffffu, a.words[i], d);
    return a.value;
}

// A block scans one chunk of a dense line in tiles of 1024 elements. With TOTALS only the chunk's total is written.
template <bool TOTALS> __device__ __forceinline__ void row(const T* __restrict__ x, T* out, W* totals) {
    extern __shared__ uint4 shared_bytes[];
    W* sums = (W*)shared_bytes;
    const u32 t = threadIdx.x, lane = t & 31, warp = t / 32;
    const count line = blockIdx.x / CHUNKS, chunk = blockIdx.x % CHUNKS;
    const count first = chunk * CHUNK, last = first + CHUNK < LENGTH ? first + CHUNK : LENGTH;
    const ix start = (ix)line * LENGTH;
    W carry = identity();
    if (!TOTALS && CHUNKS > 1) carry = totals[blockIdx.x];
    for (count tile = first; tile < last; tile += 1024) {
        W v[4];
        const count at = tile + t * 4;
#pragma unroll
        for (u32 j = 0; j < 4; j++) v[j] = at + j < last ? widen<T>(x[start + (ix)(at + j)]) : identity();
#pragma unroll
        for (u32 j = 1; j < 4; j++) v[j] = step(v[j - 1], v[j]);
        W up = v[3];
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            const W other = below(up, d);
            if (lane >= d) up = step(other, up);
        }
        W before = below(up, 1);
        __syncthreads();
        if (lane == 31) sums[warp] = up;
        __syncthreads();
        W lead = carry;
#pragma unroll
        for (u32 w = 0; w < 8; w++) {
            if (w < warp) lead = step(lead, sums[w]);
            carry = step(carry, sums[w]);
        }
        if (lane > 0) lead = step(lead, before);
        if (!TOTALS) {
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                if (at + j < last) out[start + (ix)(at + j)] = narrow<T>(step(lead, v[j]));
            }
        }
    }
    if (TOTALS && t == 0) totals[blockIdx.x] = carry;
}

// A thread scans one chunk of a strided line.
template <bool TOTALS> __device__ __forceinline__ void column(const T* __restrict__ x, T* out, W* totals) {
    for (count at = (count)blockIdx.x * 128 + threadIdx.x; at < (count)OUTER * CHUNKS * INNER; at += (count)gridDim.x * 128) {
        const count line = at / INNER, c = at - line * INNER, o = line / CHUNKS, chunk = line - o * CHUNKS;
        const count first = chunk * CHUNK, last = first + CHUNK < LENGTH ? first + CHUNK : LENGTH;
        const ix start = (ix)o * ((ix)LENGTH * INNER) + (ix)c;
        W carry = identity();
        if (!TOTALS && CHUNKS > 1) carry = totals[at];
#pragma unroll 4
        for (count k = first; k < last; k++) {
            carry = step(carry, widen<T>(x[start + (ix)k * INNER]));
            if (!TOTALS) out[start + (ix)k * INNER] = narrow<T>(carry);
        }
        if (TOTALS) totals[at] = carry;
    }
}

#ifdef ENTRY_row_totals
extern "C" __global__ void __launch_bounds__(256) row_totals(const T* x, W* totals) {
    row<true>(x, (T*)0, totals);
}
#endif
#ifdef ENTRY_row_scan
extern "C" __global__ void __launch_bounds__(256) row_scan(const T* x, T* out, W* totals) {
    row<false>(x, out, totals);
}
#endif
#ifdef ENTRY_column_totals
extern "C" __global__ void __launch_bounds__(128) column_totals(const T* x, W* totals) {
    column<true>(x, (T*)0, totals);
}
#endif
#ifdef ENTRY_column_scan
extern "C" __global__ void __launch_bounds__(128) column_scan(const T* x, T* out, W* totals) {
    column<false>(x, out, totals);
}
#endif

// Totals [OUTER, CHUNKS, INNER] become what comes before each chunk.
#ifdef ENTRY_lead
extern "C" __global__ void __launch_bounds__(128) lead(W* totals) {
    for (count at = (count)blockIdx.x * 128 + threadIdx.x; at < (count)OUTER * INNER; at += (count)gridDim.x * 128) {
        const count o = at / INNER, c = at - o * INNER;
        W carry = identity();
        for (u32 k = 0; k < CHUNKS; k++) {
            W* here = totals + ((ix)o * CHUNKS + k) * INNER + (ix)c;
            const W own = *here;
            *here = carry;
            carry = step(carry, own);
        }
    }
}
#endif
