// Warpgroups of compute capability 9.0: barriers in shared memory, operands' descriptors. The products themselves are written by `warpgroup.rs`.
#ifndef KILN_EMULATED
__device__ __forceinline__ void barrier_init(u32 at, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 at, u32 parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra ready;\nbra again;\nready:\n}" ::"r"(at), "r"(parity)
        : "memory");
}
__device__ __forceinline__ bool barrier_ready(u32 at, u32 parity) {
    u32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(at), "r"(parity) : "memory");
    return done != 0;
}
__device__ __forceinline__ void named_barrier_sync(i32 id, i32 count) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(i32 id, i32 count) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}
// What ordinary stores (and asynchronous copies) put into shared memory becomes visible to products.
__device__ __forceinline__ void fence_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void fence_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void products_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <i32 N> __device__ __forceinline__ void products_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
template <i32 N> __device__ __forceinline__ void registers_down() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <i32 N> __device__ __forceinline__ void registers_up() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
// Keeps the compiler from moving uses of accumulators across the wait that makes them valid.
template <i32 N> __device__ __forceinline__ void settle(float (&d)[N]) {
#pragma unroll
    for (i32 i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
#endif

// An operand in panels of 64 columns: rows of 128 bytes, 16-byte pieces exchanged within 8 rows. `across` is the distance of panels in bytes, used where the summed
// dimension runs along rows.
__device__ __forceinline__ u64 operand(u32 at, u32 across) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(across >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
// Where piece `part` (of 8) of row r lies in its panel.
__device__ __forceinline__ u32 piece(i32 r, i32 part) {
    return (u32)(r * 128 + ((part ^ (r & 7)) << 4));
}
