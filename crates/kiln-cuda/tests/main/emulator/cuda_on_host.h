// CUDA C++ on the host: enough of the language to run a kernel's text with g++. Blocks run one after the other; the threads of a block are
// fibers that switch at barriers and warp operations, so a missing barrier shows as a wrong result as often as not, and every index is a real address.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KILN_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __shared__
#define __restrict__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n)
#define __grid_constant__

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct dim3 { unsigned x, y, z; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---- fibers
struct Fiber { void* sp; bool done; };
static const int MAX_THREADS = 1024;
static const size_t STACK = 128 << 10;
static Fiber fibers[MAX_THREADS];
static char* stacks;
static void* main_sp;
static int current, threads_in_block;
extern "C" void kiln_switch(void** save, void* to);
asm(".text\n.globl kiln_switch\n.hidden kiln_switch\nkiln_switch:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static void set_thread(int t) {
    current = t;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}
static void (*body)();
static void yield_to_next() {
    int me = current, next = me;
    for (int i = 1; i <= threads_in_block; i++) {
        next = (me + i) % threads_in_block;
        if (!fibers[next].done) break;
    }
    if (fibers[next].done) { kiln_switch(&fibers[me].sp, main_sp); return; }
    if (next == me) return;
    set_thread(next);
    kiln_switch(&fibers[me].sp, fibers[next].sp);
    set_thread(me);
}
static void fiber_main() {
    body();
    fibers[current].done = true;
    yield_to_next();
    abort();
}
static int alive(int from, int to) {
    int n = 0;
    for (int i = from; i < to; i++) n += !fibers[i].done;
    return n;
}
struct Barrier { int arrived; unsigned generation; };
static Barrier block_barrier, warp_barriers[MAX_THREADS / 32], named_barriers[16];
static void wait_at(Barrier& b, int expected_from, int expected_to, int fixed) {
    unsigned g = b.generation;
    b.arrived++;
    long spins = 0;
    while (b.generation == g) {
        int need = fixed ? fixed : alive(expected_from, expected_to);
        if (b.arrived >= need) { b.arrived = 0; b.generation++; break; }
        yield_to_next();
        if (++spins > 100000000) { fprintf(stderr, "emulator: a barrier waits for ever\n"); abort(); }
    }
}
static inline void __syncthreads() { wait_at(block_barrier, 0, threads_in_block, 0); }
static inline void named_barrier_sync(int id, int count) { wait_at(named_barriers[id], 0, 0, count); }
static inline void named_barrier_arrive(int id, int count) {
    Barrier& b = named_barriers[id];
    if (++b.arrived >= count) { b.arrived = 0; b.generation++; }
}
static inline void __syncwarp(unsigned = 0xffffffffu) {
    int w = current / 32, end = w * 32 + 32 < threads_in_block ? w * 32 + 32 : threads_in_block;
    wait_at(warp_barriers[w], w * 32, end, 0);
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- warp operations: every lane leaves its words, all wait, all read, all wait
static unsigned char lanes[MAX_THREADS][64];
template <typename T> static T& slot(int lane) { return *(T*)lanes[(current & ~31) + lane]; }
template <typename T> static T exchange(T v, int from) {
    slot<T>(current & 31) = v;
    __syncwarp();
    T r = slot<T>(from);
    __syncwarp();
    return r;
}
template <typename T> static T __shfl_sync(unsigned, T v, int from, int width = 32) { int l = current & 31; return exchange(v, (l & ~(width - 1)) + (from & (width - 1))); }
template <typename T> static T __shfl_up_sync(unsigned, T v, unsigned d, int width = 32) { int l = current & 31; return exchange(v, (l & (width - 1)) < (int)d ? l : l - (int)d); }
template <typename T> static T __shfl_down_sync(unsigned, T v, unsigned d, int width = 32) { int l = current & 31; return exchange(v, (l & (width - 1)) + (int)d >= width ? l : l + (int)d); }
template <typename T> static T __shfl_xor_sync(unsigned, T v, int d, int = 32) { return exchange(v, (current & 31) ^ d); }
static inline unsigned __ballot_sync(unsigned, int p) {
    slot<int>(current & 31) = p;
    __syncwarp();
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (unsigned)(slot<int>(i) != 0) << i;
    __syncwarp();
    return r;
}
static inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static inline int __all_sync(unsigned m, int p) { return __ballot_sync(m, p) == 0xffffffffu; }
static inline int __syncthreads_or(int p) {
    static int any[2];
    static int turn;
    int t = turn;
    if (p) any[t] = 1;
    __syncthreads();
    int r = any[t];
    __syncthreads();
    if (current == 0) { any[t] = 0; }
    __syncthreads();
    return r;
}

// ---- numbers
static inline float __uint_as_float(unsigned v) { float r; memcpy(&r, &v, 4); return r; }
static inline unsigned __float_as_uint(float v) { unsigned r; memcpy(&r, &v, 4); return r; }
static inline float __int_as_float(int v) { return __uint_as_float((unsigned)v); }
static inline int __float_as_int(float v) { return (int)__float_as_uint(v); }
static inline long long __double_as_longlong(double v) { long long r; memcpy(&r, &v, 8); return r; }
static inline double __longlong_as_double(long long v) { double r; memcpy(&r, &v, 8); return r; }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
static inline float exp2_fast(float v) { return exp2f(v); }
static inline float rsqrtf(float v) { return 1 / sqrtf(v); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
static inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
template <typename T> static T atomicCAS(T* p, T expected, T v) { T old = *p; if (old == expected) *p = v; return old; }
static inline int atomicCAS(int* p, int expected, int v) { return atomicCAS<int>(p, expected, v); }
template <typename T> static T atomicExch(T* p, T v) { T old = *p; *p = v; return old; }
template <typename T> static T atomicAdd(T* p, T v) { T old = *p; *p = old + v; return old; }
template <typename T> static T __ldg(const T* p) { return *p; }

static inline float f16_to_float(unsigned short v) { _Float16 h; memcpy(&h, &v, 2); return (float)h; }
static inline unsigned short float_to_f16(float v) { _Float16 h = (_Float16)v; unsigned short r; memcpy(&r, &h, 2); return r; }
static inline unsigned short float_to_bf16(float v) {
    unsigned b = __float_as_uint(v);
    if (v != v) return 0x7fff;
    return (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
static inline unsigned pack_f16(float lo, float hi) { return float_to_f16(lo) | (unsigned)float_to_f16(hi) << 16; }
static inline unsigned pack_bf16(float lo, float hi) { return float_to_bf16(lo) | (unsigned)float_to_bf16(hi) << 16; }

// ---- tensor cores, matrix loads and asynchronous copies
// Which halves warpgroups multiply: set by the harness from the text.
#ifndef KILN_BF16
#define KILN_BF16 0
#endif
static const size_t SHARED = 256 << 10;
alignas(1024) unsigned char shared_memory[SHARED];
extern uint4 shared_bytes[];
asm(".globl shared_bytes\n.set shared_bytes, shared_memory\n");
static inline unsigned shared_address(const void* p) { return (unsigned)((const unsigned char*)p - shared_memory); }
static inline void copy_async_16(unsigned to, const void* from, unsigned bytes) {
    if (to % 16 || (bytes && (uintptr_t)from % 16) || to + 16 > SHARED) { fprintf(stderr, "emulator: a misplaced asynchronous copy\n"); abort(); }
    memset(shared_memory + to, 0, 16);
    memcpy(shared_memory + to, from, bytes);
}
static inline void copy_commit() {}
template <int N> static inline void copy_wait() {}
struct Address { unsigned at; };
template <bool TRANSPOSED> static inline void load_matrices(unsigned (&r)[4], unsigned at) {
    slot<unsigned>(current & 31) = at;
    __syncwarp();
    int lane = current & 31;
    for (int m = 0; m < 4; m++) {
        for (int h = 0; h < 2; h++) {
            int row = TRANSPOSED ? (lane % 4) * 2 + h : lane / 4, column = TRANSPOSED ? lane / 4 : (lane % 4) * 2 + h;
            unsigned a = slot<unsigned>(m * 8 + row);
            if (a % 16 || a + 16 > SHARED) { fprintf(stderr, "emulator: a misplaced matrix load\n"); abort(); }
            unsigned short v;
            memcpy(&v, shared_memory + a + 2 * column, 2);
            if (h == 0) r[m] = v; else r[m] |= (unsigned)v << 16;
        }
    }
    __syncwarp();
}
struct Fragments { unsigned a[4], b[2]; float c[4]; };
template <bool BF16> static inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    Fragments f;
    memcpy(f.a, a, 16);
    f.b[0] = b0; f.b[1] = b1;
    slot<Fragments>(current & 31) = f;
    __syncwarp();
    int lane = current & 31, group = lane / 4, quad = lane % 4;
    auto half = [](unsigned w, int h) { unsigned short v = (unsigned short)(w >> (16 * h)); return BF16 ? __uint_as_float((unsigned)v << 16) : f16_to_float(v); };
    for (int n = 0; n < 4; n++) {
        int row = group + (n / 2) * 8, column = quad * 2 + n % 2;
        float sum = d[n];
        for (int k = 0; k < 16; k++) {
            // a: registers 0..3 hold (row, k), (row + 8, k), (row, k + 8), (row + 8, k + 8).
            const Fragments& fa = slot<Fragments>((row % 8) * 4 + (k % 8) / 2);
            const Fragments& fb = slot<Fragments>(column * 4 + (k % 8) / 2);
            sum += half(fa.a[(k / 8) * 2 + row / 8], k % 2) * half(fb.b[k / 8], k % 2);
        }
        d[n] = sum;
    }
    __syncwarp();
}

static inline float load_if(const float* at, bool there) { return there ? *at : 0.0f; }
static inline void multiply_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    Fragments f;
    memcpy(f.a, a, 16);
    memcpy(f.b, b, 8);
    slot<Fragments>(current & 31) = f;
    __syncwarp();
    int lane = current & 31, group = lane / 4, quad = lane % 4;
    for (int n = 0; n < 4; n++) {
        int row = group + (n / 2) * 8, column = quad * 2 + n % 2;
        float sum = d[n];
        for (int k = 0; k < 8; k++) {
            // a: registers 0..3 hold (row, k), (row + 8, k), (row, k + 4), (row + 8, k + 4); b: (k, column), (k + 4, column). Low bits do not count.
            const Fragments& fa = slot<Fragments>((row % 8) * 4 + k % 4);
            const Fragments& fb = slot<Fragments>(column * 4 + k % 4);
            sum += __uint_as_float(fa.a[(k / 4) * 2 + row / 8] & 0xffffe000u) * __uint_as_float(fb.b[k / 4] & 0xffffe000u);
        }
        d[n] = sum;
    }
    __syncwarp();
}

// ---- warpgroups: products happen at once; the wait for them is a wait for nothing
struct SharedBarrier { int pending, count; };
static inline SharedBarrier* barrier_at(unsigned at) { return (SharedBarrier*)(shared_memory + at); }
// The phase is kept beside, by address.
static unsigned barrier_phase[SHARED / 8];
static inline void barrier_init(unsigned at, unsigned count) { *barrier_at(at) = {(int)count, (int)count}; barrier_phase[at / 8] = 0; }
static inline void barrier_arrive(unsigned at) {
    SharedBarrier* b = barrier_at(at);
    if (--b->pending == 0) { b->pending = b->count; barrier_phase[at / 8]++; }
}
static inline void barrier_wait(unsigned at, unsigned parity) {
    long spins = 0;
    while ((barrier_phase[at / 8] & 1) == parity) {
        yield_to_next();
        if (++spins > 1000000) { fprintf(stderr, "emulator: a shared barrier waits for ever\n"); abort(); }
    }
}
static inline bool barrier_ready(unsigned at, unsigned parity) { return (barrier_phase[at / 8] & 1) != parity; }
static inline void fence_products() {}
static inline void fence_barriers() {}
static inline void products_begin() {}
static inline void products_commit() {}
template <int N> static inline void products_wait() {}
template <int N> static inline void registers_down() {}
template <int N> static inline void registers_up() {}
template <int N> static inline void settle(float (&)[N]) {}
static Barrier group_barriers[MAX_THREADS / 128];
static inline void group_sync() { int g = current / 128; wait_at(group_barriers[g], g * 128, g * 128 + 128, 0); }
static inline float half_at(unsigned place) {
    // 128-byte swizzle: address bits 4 to 6 are exchanged with bits 7 to 9.
    place ^= (place >> 7 & 7) << 4;
    unsigned short v;
    if (place + 2 > SHARED) { fprintf(stderr, "emulator: a misplaced operand\n"); abort(); }
    memcpy(&v, shared_memory + place, 2);
    return KILN_BF16 ? __uint_as_float((unsigned)v << 16) : f16_to_float(v);
}
struct Operand {
    unsigned start, leading, stride;
    Operand(unsigned long long d) : start((d & 0x3fff) << 4), leading((d >> 16 & 0x3fff) << 4), stride((d >> 32 & 0x3fff) << 4) {
        if (d >> 62 != 1) { fprintf(stderr, "emulator: an operand without 128-byte swizzle\n"); abort(); }
    }
    // Element k of row r where the summed dimension is contiguous.
    float along(int r, int k) const { return half_at(start + r / 8 * stride + r % 8 * 128 + k * 2); }
    // Element k of column n where columns are contiguous.
    float across(int n, int k) const { return half_at(start + n / 64 * leading + n % 64 * 2 + k / 8 * stride + k % 8 * 128); }
};
template <int R> static inline void multiply_shared(float (&d)[R], unsigned long long a, unsigned long long b, int more) {
    group_sync();
    Operand left(a), right(b);
    int t = current % 128, lane = t % 32;
    for (int i = 0; i < R; i++) {
        int row = t / 32 * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = more ? d[i] : 0;
        for (int k = 0; k < 16; k++) sum += left.along(row, k) * right.along(column, k);
        d[i] = sum;
    }
    group_sync();
}
template <bool LEFT_ALONG, bool RIGHT_ALONG, int R> static inline void multiply_tiles(float (&d)[R], unsigned long long a, unsigned long long b) {
    group_sync();
    Operand left(a), right(b);
    int t = current % 128, lane = t % 32;
    for (int i = 0; i < R; i++) {
        int row = t / 32 * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = d[i];
        for (int k = 0; k < 16; k++) sum += (LEFT_ALONG ? left.along(row, k) : left.across(row, k)) * (RIGHT_ALONG ? right.along(column, k) : right.across(column, k));
        d[i] = sum;
    }
    group_sync();
}
template <int R> static inline void multiply_registers(float (&d)[R], const unsigned (&a)[4], unsigned long long b) {
    Operand right(b);
    memcpy(&slot<Fragments>(current & 31), a, 16);
    __syncwarp();
    int t = current % 128, lane = t % 32;
    for (int i = 0; i < R; i++) {
        int row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        float sum = d[i];
        for (int k = 0; k < 16; k++) {
            const Fragments& f = slot<Fragments>((row % 8) * 4 + (k % 8) / 2);
            unsigned short v = (unsigned short)(f.a[(k / 8) * 2 + row / 8] >> (16 * (k % 2)));
            sum += (KILN_BF16 ? __uint_as_float((unsigned)v << 16) : f16_to_float(v)) * right.across(column, k);
        }
        d[i] = sum;
    }
    group_sync();
}

// ---- launches
template <typename F> static void run_block(F) {}
static void run_grid(const unsigned grid[3], const unsigned block[3], void (*f)()) {
    if (!stacks) stacks = (char*)aligned_alloc(4096, STACK * MAX_THREADS);
    body = f;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    threads_in_block = block[0] * block[1] * block[2];
    for (unsigned z = 0; z < grid[2]; z++) for (unsigned y = 0; y < grid[1]; y++) for (unsigned x = 0; x < grid[0]; x++) {
        blockIdx = {x, y, z};
        memset(shared_memory, 0xc7, SHARED);
        memset(&block_barrier, 0, sizeof block_barrier);
        memset(warp_barriers, 0, sizeof warp_barriers);
        memset(named_barriers, 0, sizeof named_barriers);
        memset(group_barriers, 0, sizeof group_barriers);
        for (int t = 0; t < threads_in_block; t++) {
            void** top = (void**)(stacks + STACK * (t + 1) - 56);
            top[0] = 0;
            *--top = (void*)fiber_main;
            for (int i = 0; i < 6; i++) *--top = 0;
            fibers[t] = {top, false};
        }
        set_thread(0);
        kiln_switch(&main_sp, fibers[0].sp);
    }
}
