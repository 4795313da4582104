// Fold: every result adds the window elements that came from its place.
typedef Arith<T>::type W;

extern "C" __global__ void __launch_bounds__(256) fold(const T* __restrict__ y, T* __restrict__ x) {
    for (count at = (count)blockIdx.x * 256 + threadIdx.x; at < (count)X_LEN; at += (count)gridDim.x * 256) {
        count rest = at;
        ix from = 0;
        W sum = Number<W>::zero();
        WALK
        x[at] = narrow<T>(sum);
    }
}
