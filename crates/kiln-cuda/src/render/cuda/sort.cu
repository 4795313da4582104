// Stable sort of lines: elements become words of a key, whose order is the elements', and a position, so that no two words are equal.
typedef Arith<T>::type W;

template <typename V> struct Key {
    typedef u32 type;
    static __device__ __forceinline__ u32 of(V v) { return (V)-1 > (V)0 ? (u32)v : (u32)v ^ 0x80000000u; }
};
template <> struct Key<u64> {
    typedef u64 type;
    static __device__ __forceinline__ u64 of(u64 v) { return v; }
};
template <> struct Key<i64> {
    typedef u64 type;
    static __device__ __forceinline__ u64 of(i64 v) { return (u64)v ^ 0x8000000000000000ull; }
};
template <> struct Key<bit> {
    typedef u32 type;
    static __device__ __forceinline__ u32 of(bit v) { return v.on; }
};
// NaN above everything; adding zero makes both zeros equal.
template <> struct Key<float> {
    typedef u32 type;
    static __device__ __forceinline__ u32 of(float v) {
        const u32 bits = v != v ? 0x7fffffffu : __float_as_uint(v == 0.0f ? 0.0f : v);
        return bits >> 31 ? ~bits : bits | 0x80000000u;
    }
};
template <> struct Key<double> {
    typedef u64 type;
    static __device__ __forceinline__ u64 of(double v) {
        const u64 bits = v != v ? 0x7fffffffffffffffull : (u64)__double_as_longlong(v == 0.0 ? 0.0 : v);
        return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
    }
};

template <typename K> struct Word {
    K key;
    u32 position;
    __device__ __forceinline__ bool below(const Word& o) const { return key < o.key || (key == o.key && position < o.position); }
};
// A short key and its position are one number.
template <> struct Word<u32> {
    u64 both;
    __device__ __forceinline__ bool below(const Word& o) const { return both < o.both; }
};

typedef Key<W>::type KeyOf;
typedef Word<KeyOf> Item;

__device__ __forceinline__ Word<u32> make(u32 key, u32 position, Word<u32>*) {
    Word<u32> r;
    r.both = (u64)key << 32 | position;
    return r;
}
__device__ __forceinline__ Word<u64> make(u64 key, u32 position, Word<u64>*) {
    Word<u64> r;
    r.key = key;
    r.position = position;
    return r;
}
__device__ __forceinline__ u32 position(const Word<u32>& w) {
    return (u32)w.both;
}
__device__ __forceinline__ u32 position(const Word<u64>& w) {
    return w.position;
}

__device__ __forceinline__ Item item(T v, u32 at) {
    KeyOf key = Key<W>::of(widen<T>(v));
    if (DESCENDING) key = ~key;
    return make(key, at, (Item*)0);
}
// Beyond the end of a line: after every element.
__device__ __forceinline__ Item beyond() {
    return make((KeyOf)~(KeyOf)0, 0xffffffffu, (Item*)0);
}

__device__ __forceinline__ void write(const T* x, T* values, i64* indices, ix first, ix rank, u32 from) {
    if (HAS_VALUES) values[first + rank * INNER] = x[first + (ix)from * INNER];
    if (HAS_INDICES) indices[first + rank * INNER] = (i64)from;
}

// Bitonic sort in shared memory of BLOCK_LINES runs of TILE elements (a power of two). With one tile a line the result is written, else the sorted words.
#ifdef ENTRY_tiles
extern "C" __global__ void __launch_bounds__(256) tiles(const T* __restrict__ x, T* values, i64* indices, Item* words) {
    extern __shared__ uint4 shared_bytes[];
    Item* s = (Item*)shared_bytes;
    const u32 t = threadIdx.x;
    for (u32 at = t; at < BLOCK_LINES * TILE; at += 256) {
        const count run = (count)blockIdx.x * BLOCK_LINES + at / TILE;
        const count line = run / LINE_TILES;
        const u32 k = (u32)(run % LINE_TILES) * TILE + at % TILE;
        const ix first = (ix)(line / INNER) * ((ix)LENGTH * INNER) + (ix)(line % INNER);
        s[at] = line < (count)LINES && k < LENGTH ? item(x[first + (ix)k * INNER], k) : beyond();
    }
    for (u32 size = 2; size <= TILE; size *= 2) {
        for (u32 gap = size / 2; gap > 0; gap /= 2) {
            __syncthreads();
            for (u32 pair = t; pair < BLOCK_LINES * TILE / 2; pair += 256) {
                const u32 a = 2 * pair - (pair & (gap - 1)), b = a + gap;
                const bool rising = ((a & (TILE - 1)) & size) == 0;
                const Item u = s[a], v = s[b];
                if (v.below(u) == rising) {
                    s[a] = v;
                    s[b] = u;
                }
            }
        }
    }
    __syncthreads();
    for (u32 at = t; at < BLOCK_LINES * TILE; at += 256) {
        const count run = (count)blockIdx.x * BLOCK_LINES + at / TILE;
        const count line = run / LINE_TILES;
        const u32 k = (u32)(run % LINE_TILES) * TILE + at % TILE;
        if (line >= (count)LINES || k >= LENGTH) continue;
        if (LINE_TILES == 1) {
            write(x, values, indices, (ix)(line / INNER) * ((ix)LENGTH * INNER) + (ix)(line % INNER), (ix)k, position(s[at]));
        } else {
            words[(ix)line * LENGTH + k] = s[at];
        }
    }
}
#endif

// Merges neighbouring sorted runs of RUN words; every thread finds its share by a search along the diagonal. The last merge writes the result.
#ifdef ENTRY_merge
extern "C" __global__ void __launch_bounds__(256) merge(const Item* __restrict__ from, Item* to, const T* __restrict__ x, T* values, i64* indices, u64 run) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)LINES * THREADS; at += (count)gridDim.x * 256) {
        const count line = at / THREADS;
        const u64 k0 = (u64)(at % THREADS) * 8;
        const Item* words = from + (ix)line * LENGTH;
        const u64 start = k0 / (2 * run) * (2 * run);
        const u64 middle = start + run < LENGTH ? start + run : LENGTH, end = start + 2 * run < LENGTH ? start + 2 * run : LENGTH;
        const Item *a = words + start, *b = words + middle;
        const u64 na = middle - start, nb = end - middle, diagonal = k0 - start;
        u64 low = diagonal > nb ? diagonal - nb : 0, high = diagonal < na ? diagonal : na;
        while (low < high) {
            const u64 mid = (low + high) / 2;
            if (b[diagonal - 1 - mid].below(a[mid])) {
                high = mid;
            } else {
                low = mid + 1;
            }
        }
        u64 i = low, j = diagonal - low;
        const ix first = (ix)(line / INNER) * ((ix)LENGTH * INNER) + (ix)(line % INNER);
#pragma unroll
        for (u32 n = 0; n < 8; n++) {
            const u64 k = k0 + n;
            if (k >= LENGTH) break;
            Item next;
            if (j >= nb || (i < na && a[i].below(b[j]))) {
                next = a[i++];
            } else {
                next = b[j++];
            }
            if (2 * run >= LENGTH) {
                write(x, values, indices, first, (ix)k, position(next));
            } else {
                to[(ix)line * LENGTH + (ix)k] = next;
            }
        }
    }
}
#endif
