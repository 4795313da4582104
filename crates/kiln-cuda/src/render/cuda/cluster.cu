// Kernels that overlap, and blocks that read each other's shared memory.
#ifdef KILN_EMULATED
#define __cluster_dims__(...)
static inline void chain() {}
static inline void fetch_ahead(const void*) {}
// Blocks of a cluster run one after the other here, so that the last one finds what the others left.
#define KILN_CLUSTER(T, name, blocks, rank, n) static T name##_of[blocks][n]; T* const name = name##_of[rank]
#define cluster_read(name, rank, i) name##_of[rank][i]
static inline void cluster_sync() { __syncthreads(); }
#else
// What runs next may start now as far as it does not need this kernel's results; and what ran before has finished from here on.
__device__ __forceinline__ void chain() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Brings a line into the second-level cache.
__device__ __forceinline__ void fetch_ahead(const void* p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}
// Shared memory that the blocks of a cluster read of each other. Between writing and reading, and before the end, they meet in `cluster_sync`.
#define KILN_CLUSTER(T, name, blocks, rank, n) __shared__ T name[n]
#if __CUDA_ARCH__ >= 900
template <class T> __device__ __forceinline__ T cluster_read(const T* p, unsigned rank, int i) {
    const T* q;
    asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p + i), "r"(rank));
    return *q;
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
#endif
#endif
