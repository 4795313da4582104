// Products of 32-bit floats on tensor cores (mma.sync): factors of 11 bits (TensorFloat-32), of which two make up one of full precision.
#ifndef KILN_EMULATED
// d += a . b for a 16x8, b 8x8. Only the upper 19 bits of a factor count.
__device__ __forceinline__ void multiply_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])),
                   "r"(__float_as_uint(b[1])));
}
// An element, or 0 where it isn't there.
__device__ __forceinline__ float load_if(const float* at, bool there) {
    float x;
    asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; mov.f32 %0, 0f00000000; @p ld.global.nc.f32 %0, [%1]; }" : "=f"(x) : "l"(at), "r"((i32)there));
    return x;
}
#endif

// The nearest number of 11 bits to a finite one.
__device__ __forceinline__ float to_tf32(float x) {
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

// What cannot be split: infinities, NaN, and what rounds to infinity.
__device__ __forceinline__ bool is_odd(float x) {
    return !(fabsf(x) < 3.4e38f);
}
