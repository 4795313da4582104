// A producer announces what it fetched one fetch later, when it has likely arrived; before it waits for room it announces everything.
#define NOTHING 0xffffffffu
struct Queue {
    u32 last;
    template <i32 LATER> __device__ __forceinline__ void announce() {
        if (last == NOTHING) return;
        copy_wait<LATER>();
        fence_products();
        barrier_arrive(last);
    }
    __device__ __forceinline__ void room(u32 empty, u32 parity) {
        if (barrier_ready(empty, parity)) return;
        announce<0>();
        last = NOTHING;
        barrier_wait(empty, parity);
    }
    __device__ __forceinline__ void started(u32 full) {
        copy_commit();
        announce<1>();
        last = full;
    }
};
