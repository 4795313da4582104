// Element types of buffers and the arithmetic they run in. Half floats are widened to f32, integers wrap, on bools addition is "or" and multiplication "and".
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct bit {
    u8 on;
};

#ifndef KILN_EMULATED
__device__ __forceinline__ float f16_to_float(u16 v) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
    return r;
}
__device__ __forceinline__ u16 float_to_f16(float v) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ u16 float_to_bf16(float v) {
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
// Two halves in one word, `lo` in the lower one.
__device__ __forceinline__ u32 pack_f16(float lo, float hi) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
__device__ __forceinline__ u32 pack_bf16(float lo, float hi) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
#endif

// What arithmetic on an element runs in, and both conversions.
template <typename T> struct Arith {
    typedef T type;
    static __device__ __forceinline__ T widen(T v) { return v; }
    static __device__ __forceinline__ T narrow(T v) { return v; }
};
template <> struct Arith<f16> {
    typedef float type;
    static __device__ __forceinline__ float widen(f16 v) { return f16_to_float(v.bits); }
    static __device__ __forceinline__ f16 narrow(float v) {
        f16 r;
        r.bits = float_to_f16(v);
        return r;
    }
    static __device__ __forceinline__ u32 pack(float lo, float hi) { return pack_f16(lo, hi); }
};
template <> struct Arith<bf16> {
    typedef float type;
    static __device__ __forceinline__ float widen(bf16 v) { return __uint_as_float((u32)v.bits << 16); }
    static __device__ __forceinline__ bf16 narrow(float v) {
        bf16 r;
        r.bits = float_to_bf16(v);
        return r;
    }
    static __device__ __forceinline__ u32 pack(float lo, float hi) { return pack_bf16(lo, hi); }
};
template <typename T> __device__ __forceinline__ typename Arith<T>::type widen(T v) {
    return Arith<T>::widen(v);
}
template <typename T> __device__ __forceinline__ T narrow(typename Arith<T>::type v) {
    return Arith<T>::narrow(v);
}

// Integers: computed in 64 bits without a sign, so that overflow wraps.
template <typename W> struct Number {
    static __device__ __forceinline__ W zero() { return (W)0; }
    static __device__ __forceinline__ W one() { return (W)1; }
    static __device__ __forceinline__ W lowest() { return (W)-1 > (W)0 ? (W)0 : (W)((u64)1 << (8 * sizeof(W) - 1)); }
    static __device__ __forceinline__ W highest() { return (W)~(u64)lowest(); }
    static __device__ __forceinline__ W add(W a, W b) { return (W)((u64)a + (u64)b); }
    static __device__ __forceinline__ W mul(W a, W b) { return (W)((u64)a * (u64)b); }
    static __device__ __forceinline__ W larger(W a, W b) { return a > b ? a : b; }
    static __device__ __forceinline__ W smaller(W a, W b) { return a < b ? a : b; }
    static __device__ __forceinline__ W over(W a, u32 n) { return n == 0 ? (W)0 : (W)-1 > (W)0 ? (W)((u64)a / n) : (W)((i64)a / (i64)n); }
    static __device__ __forceinline__ bool beats(W a, W best) { return a > best; }
};
// Floats: maximum and minimum pass NaN on.
template <typename W> struct Real {
    static __device__ __forceinline__ W zero() { return (W)0; }
    static __device__ __forceinline__ W one() { return (W)1; }
    static __device__ __forceinline__ W lowest() { return (W)-__uint_as_float(0x7f800000u); }
    static __device__ __forceinline__ W highest() { return (W)__uint_as_float(0x7f800000u); }
    static __device__ __forceinline__ W add(W a, W b) { return a + b; }
    static __device__ __forceinline__ W mul(W a, W b) { return a * b; }
    static __device__ __forceinline__ W larger(W a, W b) { return a > b || a != a ? a : b; }
    static __device__ __forceinline__ W smaller(W a, W b) { return a < b || a != a ? a : b; }
    static __device__ __forceinline__ W over(W a, u32 n) { return a / (W)n; }
    static __device__ __forceinline__ bool beats(W a, W best) { return a > best || (a != a && best == best); }
};
template <> struct Number<float> : Real<float> {};
template <> struct Number<double> : Real<double> {};
template <> struct Number<bit> {
    static __device__ __forceinline__ bit of(u8 v) {
        bit r;
        r.on = v;
        return r;
    }
    static __device__ __forceinline__ bit zero() { return of(0); }
    static __device__ __forceinline__ bit one() { return of(1); }
    static __device__ __forceinline__ bit lowest() { return of(0); }
    static __device__ __forceinline__ bit highest() { return of(1); }
    static __device__ __forceinline__ bit add(bit a, bit b) { return of(a.on | b.on); }
    static __device__ __forceinline__ bit mul(bit a, bit b) { return of(a.on & b.on); }
    static __device__ __forceinline__ bit larger(bit a, bit b) { return of(a.on | b.on); }
    static __device__ __forceinline__ bit smaller(bit a, bit b) { return of(a.on & b.on); }
    static __device__ __forceinline__ bit over(bit a, u32 n) { return of(n == 1 ? a.on : 0); }
    static __device__ __forceinline__ bool beats(bit a, bit best) { return a.on > best.on; }
};

// The first failure of a run: what kind, its axis, the index and the extent it should have been below.
__device__ __forceinline__ void report(int* fault, int kind, int axis, i64 index, i64 extent) {
    if (atomicCAS(fault, 0, -1) == 0) {
        fault[1] = axis;
        fault[2] = (int)index;
        fault[3] = (int)(index >> 32);
        fault[4] = (int)extent;
        fault[5] = (int)(extent >> 32);
        __threadfence();
        atomicExch(fault, kind);
    }
}
