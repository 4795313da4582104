// What the producers of attention's warpgroup kernels do: rows into swizzled panels.
#define D_PANELS (D / 64)
#define E_PANELS (E / 64)
#define LOG2E 1.4426950408889634
#define LN2 0.6931471805599453f
#define PLAIN_SCORES (!HAS_CAP && !HAS_BIAS && SCALE > 0)

// A share of ROWS rows of PANELS panels: rows from `limit` on are zeros. 128 threads.
template <i32 ROWS, i32 PANELS> __device__ __forceinline__ void fetch(u32 to, const T* from, i64 step, i32 row0, i32 limit, i32 t) {
    constexpr i32 APART = 128 / (PANELS * 8);
    const i32 part = t % (PANELS * 8), first = t / (PANELS * 8);
    // Rows of a thread are a multiple of 8 apart, so that their pieces lie at the same place within 8 rows.
    u32 there = to + (u32)(part / 8 * ROWS * 128) + piece(first, part % 8);
    const T* at = from + part * 8 + (i64)(row0 + first) * step;
    i32 left = limit - row0 - first;
#pragma unroll 4
    for (i32 i = 0; i < ROWS / APART; i++) {
        copy_async_16(there, left > 0 ? at : from, left > 0 ? 16 : 0);
        there += APART * 128;
        at += (i64)APART * step;
        left -= APART;
    }
}
