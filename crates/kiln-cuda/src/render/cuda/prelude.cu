// What every kernel of Kiln may use: element types, conversions, elementwise ops on each lane, reductions and random numbers.
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
struct f16 { u16 b; };
struct bf16 { u16 b; };

// Memory element to the register it is computed in, and back. Half types compute as float.
#ifdef KILN_EMULATED
#define KILN_SHARED static
static inline float up(f16 x) { return f16_to_float(x.b); }
static inline f16 to_f16(float x) { f16 y; y.b = float_to_f16(x); return y; }
static inline bf16 to_bf16(float x) { bf16 y; y.b = float_to_bf16(x); return y; }
static inline u32 f16_pair(float lo, float hi) { return pack_f16(lo, hi); }
static inline u32 bf16_pair(float lo, float hi) { return pack_bf16(lo, hi); }
static inline float kiln_max(float a, float b) { return a != a || b != b ? __int_as_float(0x7fc00000) : fmaxf(a, b); }
static inline float kiln_min(float a, float b) { return a != a || b != b ? __int_as_float(0x7fc00000) : fminf(a, b); }
static inline float h_exp(float x) { return expf(x); }
static inline float h_exp2(float x) { return exp2f(x); }
static inline float h_log(float x) { return logf(x); }
static inline float h_recip(float x) { return 1.0f / x; }
static inline float h_div(float x, float y) { return x / y; }
static inline float h_sqrt(float x) { return sqrtf(x); }
static inline float h_tanh(float x) { return tanhf(x); }
static inline u32 __umulhi(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
static inline double cospi(double x) { return cos(x * 3.14159265358979323846); }
#else
#define KILN_SHARED __shared__
__device__ __forceinline__ float up(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.b)); return y; }
__device__ __forceinline__ f16 to_f16(float x) { f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.b) : "f"(x)); return y; }
__device__ __forceinline__ bf16 to_bf16(float x) { bf16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.b) : "f"(x)); return y; }
__device__ __forceinline__ u32 f16_pair(float lo, float hi) { u32 y; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo)); return y; }
__device__ __forceinline__ u32 bf16_pair(float lo, float hi) { u32 y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo)); return y; }
__device__ __forceinline__ float kiln_max(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
__device__ __forceinline__ float kiln_min(float a, float b) { float y; asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
// Functions of half types: one or two instructions of the special function unit, errors below 1e-6.
__device__ __forceinline__ float h_exp(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f)); return y; }
__device__ __forceinline__ float h_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float h_log(float x) { float y; asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y * 0.6931471805599453f; }
__device__ __forceinline__ float h_recip(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float h_div(float x, float y) { float z; asm("div.full.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y)); return z; }
__device__ __forceinline__ float h_sqrt(float x) { float y; asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float h_tanh(float x) { return fmaf(-2.0f, h_recip(1.0f + h_exp(2.0f * x)), 1.0f); }
#endif
// erfc(a) is two to the power of a polynomial: absolute error 6e-7, with one instruction of the special function unit.
__device__ __forceinline__ float h_erf(float x) {
    float a = fabsf(x);
    float p = fmaf(fmaf(fmaf(fmaf(-0.0029441698f, a, 0.0295900872f), a, -0.1486656848f), a, -0.9185093390f), a, -1.6278890097f);
    return copysignf(1.0f - h_exp2(p * a), x);
}
__device__ __forceinline__ float up(bf16 x) { return __uint_as_float((u32)x.b << 16); }
template <class T> __device__ __forceinline__ T up(T x) { return x; }
template <class T> struct down_to { template <class S> static __device__ __forceinline__ T from(S x) { return (T)x; } };
template <> struct down_to<f16> { static __device__ __forceinline__ f16 from(float x) { return to_f16(x); } };
template <> struct down_to<bf16> { static __device__ __forceinline__ bf16 from(float x) { return to_bf16(x); } };
template <class T, class S> __device__ __forceinline__ T down(S x) { return down_to<T>::from(x); }
__device__ __forceinline__ float round_f16(float x) { return up(down<f16>(x)); }
__device__ __forceinline__ float round_bf16(float x) { return up(down<bf16>(x)); }

// N neighbouring elements moved as one access of up to 16 bytes (several for more).
template <int BYTES> struct raw { uint4 q[BYTES / 16]; };
template <> struct raw<1> { u8 q; };
template <> struct raw<2> { u16 q; };
template <> struct raw<4> { u32 q; };
template <> struct raw<8> { uint2 q; };
template <class T, int N> struct vec {
    raw<sizeof(T) * N> r;
    __device__ __forceinline__ T at(int i) const { return reinterpret_cast<const T*>(&r)[i]; }
    __device__ __forceinline__ void set(int i, T v) { reinterpret_cast<T*>(&r)[i] = v; }
};
template <class T, int N> __device__ __forceinline__ vec<T, N> ldv(const T* p) { vec<T, N> v; v.r = *reinterpret_cast<const raw<sizeof(T) * N>*>(p); return v; }
// The same for elements that are read once: they leave the first-level cache to what is read again.
template <class T, int N> __device__ __forceinline__ vec<T, N> ldv_once(const T* p) {
    vec<T, N> v;
#ifdef KILN_EMULATED
    v = ldv<T, N>(p);
#else
    if constexpr (sizeof(T) * N % 16 == 0) {
#pragma unroll
        for (int i = 0; i < (int)(sizeof(T) * N / 16); i++) {
            uint4& q = reinterpret_cast<uint4*>(&v)[i];
            asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "l"(reinterpret_cast<const uint4*>(p) + i) : "memory");
        }
    } else {
        v = ldv<T, N>(p);
    }
#endif
    return v;
}
template <class T, int N, class S> struct pack_to {
    static __device__ __forceinline__ vec<T, N> from(const S (&x)[N]) {
        vec<T, N> v;
#pragma unroll
        for (int i = 0; i < N; i++) v.set(i, down<T>(x[i]));
        return v;
    }
};
template <int N> struct pack_to<bf16, N, float> {
    static __device__ __forceinline__ vec<bf16, N> from(const float (&x)[N]) {
        vec<bf16, N> v;
        if (N == 1) { v.set(0, down<bf16>(x[0])); return v; }
#pragma unroll
        for (int i = 0; i + 1 < N; i += 2) reinterpret_cast<u32*>(&v)[i / 2] = bf16_pair(x[i], x[i + 1]);
        return v;
    }
};
template <int N> struct pack_to<f16, N, float> {
    static __device__ __forceinline__ vec<f16, N> from(const float (&x)[N]) {
        vec<f16, N> v;
        if (N == 1) { v.set(0, down<f16>(x[0])); return v; }
#pragma unroll
        for (int i = 0; i + 1 < N; i += 2) reinterpret_cast<u32*>(&v)[i / 2] = f16_pair(x[i], x[i + 1]);
        return v;
    }
};
template <class T, int N, class S> __device__ __forceinline__ void stv(T* p, const S (&x)[N]) { *reinterpret_cast<raw<sizeof(T) * N>*>(p) = pack_to<T, N, S>::from(x).r; }

// Float ops that CUDA does not name, and the double forms of those named for float.
__device__ __forceinline__ float kiln_nan(float) { return __int_as_float(0x7fc00000); }
__device__ __forceinline__ double kiln_nan(double) { return __longlong_as_double(0x7ff8000000000000LL); }
template <class T> __device__ __forceinline__ T kiln_sign(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x == (T)0 ? (T)0 : x; }
__device__ __forceinline__ double kiln_max(double a, double b) { return a != a || b != b ? kiln_nan(a) : fmax(a, b); }
__device__ __forceinline__ double kiln_min(double a, double b) { return a != a || b != b ? kiln_nan(a) : fmin(a, b); }
__device__ __forceinline__ float kiln_rem(float x, float y) { float r = fmodf(x, y); return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r; }
__device__ __forceinline__ double kiln_rem(double x, double y) { double r = fmod(x, y); return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r; }
#define KILN_DOUBLE1(f, d) __device__ __forceinline__ double f(double x) { return d(x); }
KILN_DOUBLE1(fabsf, fabs) KILN_DOUBLE1(sqrtf, sqrt) KILN_DOUBLE1(expf, exp) KILN_DOUBLE1(logf, log) KILN_DOUBLE1(log1pf, log1p) KILN_DOUBLE1(sinf, sin)
KILN_DOUBLE1(cosf, cos) KILN_DOUBLE1(tanf, tan) KILN_DOUBLE1(asinf, asin) KILN_DOUBLE1(acosf, acos) KILN_DOUBLE1(atanf, atan) KILN_DOUBLE1(sinhf, sinh)
KILN_DOUBLE1(coshf, cosh) KILN_DOUBLE1(tanhf, tanh) KILN_DOUBLE1(asinhf, asinh) KILN_DOUBLE1(acoshf, acosh) KILN_DOUBLE1(atanhf, atanh) KILN_DOUBLE1(erff, erf)
KILN_DOUBLE1(floorf, floor) KILN_DOUBLE1(ceilf, ceil) KILN_DOUBLE1(rintf, rint) KILN_DOUBLE1(truncf, trunc)
__device__ __forceinline__ double fmodf(double x, double y) { return fmod(x, y); }
__device__ __forceinline__ double powf(double x, double y) { return pow(x, y); }
__device__ __forceinline__ double atan2f(double x, double y) { return atan2(x, y); }

// Integer and bool ops, by name: arithmetic wraps to the dtype.
template <class T> struct wide { typedef u64 t; static const bool is_signed = (T)-1 < (T)0; };
#define KILN_INT1(name, e) template <class T> __device__ __forceinline__ T i_##name(T a) { typedef u64 W; return (T)(e); }
#define KILN_INT2(name, e) template <class T> __device__ __forceinline__ T i_##name(T a, T b) { typedef u64 W; return (T)(e); }
#define KILN_CMP(name, o) template <class T> __device__ __forceinline__ bool i_##name(T a, T b) { return a o b; }
KILN_INT1(neg, (W)0 - (W)a)
KILN_INT1(abs, a < (T)0 ? (W)0 - (W)a : (W)a)
KILN_INT1(sign, a > (T)0 ? 1 : a < (T)0 ? -1 : 0)
KILN_INT1(not, ~(W)a)
KILN_INT2(add, (W)a + (W)b)
KILN_INT2(sub, (W)a - (W)b)
KILN_INT2(mul, (W)a * (W)b)
KILN_INT2(and, a & b)
KILN_INT2(or, a | b)
KILN_INT2(xor, a ^ b)
KILN_INT2(max, a > b ? a : b)
KILN_INT2(min, a < b ? a : b)
KILN_CMP(eq, ==) KILN_CMP(ne, !=) KILN_CMP(lt, <) KILN_CMP(le, <=) KILN_CMP(gt, >) KILN_CMP(ge, >=)
__device__ __forceinline__ bool i_not(bool a) { return !a; }
template <class T> __device__ __forceinline__ T i_div(T a, T b) { return b == (T)0 ? (T)0 : wide<T>::is_signed && b == (T)-1 ? i_neg(a) : (T)(a / b); }
template <class T> __device__ __forceinline__ T i_rem(T a, T b) {
    if (b == (T)0 || (wide<T>::is_signed && b == (T)-1)) return (T)0;
    T r = (T)(a % b);
    return r != (T)0 && (r < (T)0) != (b < (T)0) ? (T)(r + b) : r;
}
template <class T> __device__ __forceinline__ T i_shl(T a, T s) { return s >= (T)0 && s < (T)64 ? (T)((u64)a << (int)s) : (T)0; }
template <class T> __device__ __forceinline__ T i_shr(T a, T s) {
    bool in = s >= (T)0 && s < (T)64;
    return wide<T>::is_signed ? (T)((i64)a >> (in ? (int)s : 63)) : in ? (T)((u64)a >> (int)s) : (T)0;
}

// Casts: floats to integers truncate and saturate, NaN gives 0; integers wrap.
template <class T> struct limits;
#define KILN_LIMITS(T, lo, hi) template <> struct limits<T> { static __device__ __forceinline__ T low() { return lo; } static __device__ __forceinline__ T high() { return hi; } };
KILN_LIMITS(i64, (i64)0x8000000000000000ULL, 0x7fffffffffffffffLL) KILN_LIMITS(u64, 0, 0xffffffffffffffffULL) KILN_LIMITS(i32, (i32)0x80000000U, 0x7fffffff)
KILN_LIMITS(u32, 0, 0xffffffffU) KILN_LIMITS(i16, -32768, 32767) KILN_LIMITS(u16, 0, 65535) KILN_LIMITS(i8, -128, 127) KILN_LIMITS(u8, 0, 255)
KILN_LIMITS(bool, false, true)
KILN_LIMITS(float, __int_as_float(0xff800000), __int_as_float(0x7f800000))
KILN_LIMITS(double, __longlong_as_double(0xfff0000000000000LL), __longlong_as_double(0x7ff0000000000000LL))
template <class T, class S> struct cast_of { static __device__ __forceinline__ T go(S x) { return (T)x; } };
template <class T, class S> __device__ __forceinline__ T saturate(S x) {
    return x != x ? (T)0 : x <= (S)limits<T>::low() ? limits<T>::low() : x >= (S)limits<T>::high() ? limits<T>::high() : (T)x;
}
#define KILN_SATURATE(T) template <> struct cast_of<T, float> { static __device__ __forceinline__ T go(float x) { return saturate<T, float>(x); } }; \
    template <> struct cast_of<T, double> { static __device__ __forceinline__ T go(double x) { return saturate<T, double>(x); } };
KILN_SATURATE(i64) KILN_SATURATE(u64) KILN_SATURATE(i32) KILN_SATURATE(u32) KILN_SATURATE(i16) KILN_SATURATE(u16) KILN_SATURATE(i8) KILN_SATURATE(u8)
template <class S> struct cast_of<bool, S> { static __device__ __forceinline__ bool go(S x) { return x != (S)0; } };
template <class T, class S> __device__ __forceinline__ T cast(S x) { return cast_of<T, S>::go(x); }

// Reductions: a start, a step, and the way lanes of a warp exchange accumulators.
template <class T> struct arg { T v; i64 i; };
#define KILN_REDUCE(name, start, step) template <class T> struct r_##name { typedef T t; \
    static __device__ __forceinline__ T init() { return start; } \
    static __device__ __forceinline__ T join(T a, T b) { return step; } };
template <class T> __device__ __forceinline__ T j_add(T a, T b) { return i_add(a, b); }
__device__ __forceinline__ float j_add(float a, float b) { return a + b; }
__device__ __forceinline__ double j_add(double a, double b) { return a + b; }
template <class T> __device__ __forceinline__ T j_mul(T a, T b) { return i_mul(a, b); }
__device__ __forceinline__ float j_mul(float a, float b) { return a * b; }
__device__ __forceinline__ double j_mul(double a, double b) { return a * b; }
template <class T> __device__ __forceinline__ T j_max(T a, T b) { return i_max(a, b); }
__device__ __forceinline__ float j_max(float a, float b) { return kiln_max(a, b); }
__device__ __forceinline__ double j_max(double a, double b) { return kiln_max(a, b); }
template <class T> __device__ __forceinline__ T j_min(T a, T b) { return i_min(a, b); }
__device__ __forceinline__ float j_min(float a, float b) { return kiln_min(a, b); }
__device__ __forceinline__ double j_min(double a, double b) { return kiln_min(a, b); }
KILN_REDUCE(sum, (T)0, j_add(a, b))
KILN_REDUCE(prod, (T)1, j_mul(a, b))
KILN_REDUCE(max, limits<T>::low(), j_max(a, b))
KILN_REDUCE(min, limits<T>::high(), j_min(a, b))
KILN_REDUCE(any, false, a || b)
KILN_REDUCE(all, true, a && b)
template <class T> __device__ __forceinline__ bool nan_of(T x) { return x != x; }
#define KILN_ARG(name, o) template <class T> struct r_##name { typedef arg<T> t; \
    static __device__ __forceinline__ arg<T> init() { arg<T> a; a.v = (T)0; a.i = -1; return a; } \
    static __device__ __forceinline__ arg<T> join(arg<T> a, arg<T> b) { \
        if (b.i < 0) return a; \
        if (a.i < 0) return b; \
        bool better = (nan_of(b.v) && !nan_of(a.v)) || (b.v o a.v && !nan_of(a.v)); \
        bool equal = (nan_of(b.v) && nan_of(a.v)) || b.v == a.v; \
        return better || (equal && b.i < a.i) ? b : a; } };
KILN_ARG(argmax, >)
KILN_ARG(argmin, <)
template <class T> __device__ __forceinline__ arg<T> at_index(T v, i64 i) { arg<T> a; a.v = v; a.i = i; return a; }
template <class T> __device__ __forceinline__ T xor_lane(T x, int m) { return __shfl_xor_sync(0xffffffffu, x, m); }
__device__ __forceinline__ bool xor_lane(bool x, int m) { return __shfl_xor_sync(0xffffffffu, (int)x, m) != 0; }
__device__ __forceinline__ u8 xor_lane(u8 x, int m) { return (u8)__shfl_xor_sync(0xffffffffu, (int)x, m); }
__device__ __forceinline__ i8 xor_lane(i8 x, int m) { return (i8)__shfl_xor_sync(0xffffffffu, (int)x, m); }
__device__ __forceinline__ u16 xor_lane(u16 x, int m) { return (u16)__shfl_xor_sync(0xffffffffu, (int)x, m); }
__device__ __forceinline__ i16 xor_lane(i16 x, int m) { return (i16)__shfl_xor_sync(0xffffffffu, (int)x, m); }
template <class T> __device__ __forceinline__ arg<T> xor_lane(arg<T> x, int m) { arg<T> y; y.v = xor_lane(x.v, m); y.i = xor_lane(x.i, m); return y; }
template <class R, int LANES> __device__ __forceinline__ typename R::t join_lanes(typename R::t x) {
#pragma unroll
    for (int m = LANES / 2; m > 0; m /= 2) x = R::join(x, xor_lane(x, m));
    return x;
}

// Random numbers: Philox 4x32-10, one counter for each block of words, as kiln_ir::philox says.
__device__ __forceinline__ u32 philox_word(u64 seed, u64 i, u32 stream) {
    u64 n = (i / 64) * 16 + i % 16;
    u32 c0 = (u32)n, c1 = (u32)(n >> 32), c2 = stream, c3 = 0, k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int r = 0; r < 10; r++) {
        u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    u32 w = (u32)(i / 16 % 4);
    return w == 0 ? c0 : w == 1 ? c1 : w == 2 ? c2 : c3;
}
__device__ __forceinline__ void random_uniform(float& y, u64 seed, u64 i) { y = (float)(philox_word(seed, i, 0) >> 8) * (1.0f / 16777216.0f); }
__device__ __forceinline__ void random_uniform(double& y, u64 seed, u64 i) {
    u64 hi = philox_word(seed, i, 0), lo = philox_word(seed, i, 1) >> 11;
    y = (double)((hi << 21) | lo) * (1.0 / 9007199254740992.0);
}
__device__ __forceinline__ void random_normal(float& y, u64 seed, u64 i) {
    double u = ((double)(philox_word(seed, i, 0) >> 8) + 1.0) * (1.0 / 16777216.0), v = (double)(philox_word(seed, i, 1) >> 8) * (1.0 / 16777216.0);
    y = (float)(sqrt(-2.0 * log(u)) * cospi(2.0 * v));
}
__device__ __forceinline__ void random_normal(double& y, u64 seed, u64 i) {
    double u = ((double)philox_word(seed, i, 0) + 1.0) * (1.0 / 4294967296.0), v = (double)philox_word(seed, i, 1) * (1.0 / 4294967296.0);
    y = sqrt(-2.0 * log(u)) * cospi(2.0 * v);
}
template <class T> __device__ __forceinline__ void random_bits(T& y, u64 seed, u64 i) { y = (T)philox_word(seed, i, 0); }
template <class T> __device__ __forceinline__ T uniform(u64 seed, u64 i) { T y; random_uniform(y, seed, i); return y; }
template <class T> __device__ __forceinline__ T normal(u64 seed, u64 i) { T y; random_normal(y, seed, i); return y; }
template <class T> __device__ __forceinline__ T bits(u64 seed, u64 i) { T y; random_bits(y, seed, i); return y; }
