// Tensor cores by warps (mma.sync), matrix loads and asynchronous copies to shared memory: compute capability 8.0 and later.
#ifndef KILN_EMULATED
__device__ __forceinline__ u32 shared_address(const void* p) {
    return (u32)__cvta_generic_to_shared(p);
}
// Copies `bytes` (16 or 0) bytes and fills up to 16 with zeros.
__device__ __forceinline__ void copy_async_16(u32 to, const void* from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
// Four 8x8 matrices of halves; lane l gives the address of row l % 8 of matrix l / 8.
template <bool TRANSPOSED> __device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 at) {
    if (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    }
}
// d += a . b for a 16x16, b 16x8.
template <bool BF16> __device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    if (BF16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}
__device__ __forceinline__ float exp2_fast(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
#endif

// Where a lane's row of the four matrices of a 16x16 block is, in bytes from the block's start; PITCH is a row's length in elements.
// Of a left operand [row][k] (or, transposed, of a right operand [k][column]).
template <i32 PITCH> __device__ __forceinline__ u32 left_place(i32 lane) {
    return (u32)(((lane / 8 % 2 * 8 + lane % 8) * PITCH + lane / 16 * 8) * 2);
}
// Of a right operand [column][k].
template <i32 PITCH> __device__ __forceinline__ u32 right_place(i32 lane) {
    return (u32)(((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2);
}
