// Gather: points where the index changes; at each a run of CHUNKS vectors of type V is copied.
extern "C" __global__ void __launch_bounds__(256) gather(const V* __restrict__ x, const I* __restrict__ index, V* __restrict__ out, const u64* args, int* fault) {
    const ix x_origin = X_ORIGIN, index_origin = INDEX_ORIGIN;
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)POINTS * CHUNKS; at += (count)gridDim.x * 256) {
        count rest = at / CHUNKS;
        const count chunk = at - rest * CHUNKS;
        ix from = x_origin, which = index_origin;
        WALK
        const i64 i = (i64)index[which];
        if ((u64)i >= (u64)EXTENT) {
            report(fault, 1, AXIS, i, EXTENT);
            continue;
        }
        out[at] = x[from + (ix)i * X_STEP + (ix)chunk];
    }
}
