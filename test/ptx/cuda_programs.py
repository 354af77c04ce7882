"""Programs in CUDA C++, which `make_cuda_ptx.py` compiles, with what they are given and must give."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Arrays = list[Any]
_BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Program:
    """A kernel `k` whose last argument is its result."""

    name: str
    source: str
    threads: int
    blocks: int
    arguments: Callable[[np.random.Generator], Arrays]
    wanted: Callable[..., Any]
    """Of the arguments but the last one."""
    tolerance: float = 0.0
    reads_beyond: bool = False
    """Whether it reads shared memory that nobody wrote, and leaves what it read."""
    architectures: tuple[int, ...] = (80, 90)
    boxes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of arguments that are tensor maps, by their place, the innermost dimension first."""

    def file(self, arch: int) -> str:
        return f"{self.name.replace(' ', '_')}-sm_{arch}.ptx"

    def random(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(self.name.encode()))


PROGRAMS: list[Program] = []


def _program(name: str, source: str, threads: int, blocks: int, arguments: Callable, wanted: Callable,
             tolerance: float = 0.0, reads_beyond: bool = False, **others: Any) -> None:  # fmt: skip
    PROGRAMS.append(Program(name, source, threads, blocks, arguments, wanted, tolerance, reads_beyond, **others))


def _integers(n: int, dtype: Any = np.int32, low: int = -1000, high: int = 1000) -> Callable:
    return lambda random: random.integers(low, high, n).astype(dtype)


# ---- blocks and warps of CUB ---------------------------------------------------------------------
_TYPES = {"int": np.int32, "float": np.float32, "double": np.float64, "long long": np.int64, "short": np.int16,
          "unsigned char": np.uint8}  # fmt: skip


def _drawn(type_: str, n: int, random: np.random.Generator) -> np.ndarray:
    dtype = np.dtype(_TYPES[type_])
    if dtype.kind == "f":
        return random.normal(size=n).astype(dtype)
    return random.integers(0 if dtype.kind == "u" else -100, 100, n).astype(dtype)


for _type, _algorithm in (("int", "BLOCK_REDUCE_RAKING"), ("int", "BLOCK_REDUCE_WARP_REDUCTIONS"),
                          ("float", "BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY"), ("double", "BLOCK_REDUCE_WARP_REDUCTIONS")):  # fmt: skip
    _program(
        f"block reduce {_type} {_algorithm[13:].lower()}",
        f"""#include <cub/block/block_reduce.cuh>
        extern "C" __global__ void k(const {_type}* x, {_type}* out) {{
            using R = cub::BlockReduce<{_type}, 128, cub::{_algorithm}>;
            __shared__ typename R::TempStorage storage;
            {_type} items[3];
            for (int i = 0; i < 3; ++i) items[i] = x[(blockIdx.x * 128 + threadIdx.x) * 3 + i];
            {_type} sum = R(storage).Sum(items);
            if (threadIdx.x == 0) out[blockIdx.x] = sum;
        }}""",
        128, 4, lambda random, t=_type: [_drawn(t, 128 * 12, random), np.zeros(4, _TYPES[t])],
        lambda x: x.astype(np.float64).reshape(4, -1).sum(1), 0 if _type == "int" else 1e-5,
    )  # fmt: skip

for _type in ("int", "float"):
    _program(
        f"warp reduce {_type}",
        f"""#include <cub/warp/warp_reduce.cuh>
        #include <cuda/functional>
        extern "C" __global__ void k(const {_type}* x, {_type}* out) {{
            using R = cub::WarpReduce<{_type}, 16>;
            __shared__ typename R::TempStorage storage[8];
            int group = threadIdx.x / 16;
            {_type} most = R(storage[group]).Reduce(x[blockIdx.x * 128 + threadIdx.x], cuda::maximum<>{{}});
            if (threadIdx.x % 16 == 0) out[blockIdx.x * 8 + group] = most;
        }}""",
        128, 2, lambda random, t=_type: [_drawn(t, 256, random), np.zeros(16, _TYPES[t])],
        lambda x: x.reshape(16, 16).max(1),
    )  # fmt: skip

for _type, _algorithm in (
    ("int", "RAKING"),
    ("int", "WARP_SCANS"),
    ("float", "RAKING_MEMOIZE"),
    ("long long", "WARP_SCANS"),
):
    _program(
        f"block scan {_type} {_algorithm.lower()}",
        f"""#include <cub/block/block_scan.cuh>
        extern "C" __global__ void k(const {_type}* x, {_type}* out) {{
            using S = cub::BlockScan<{_type}, 128, cub::BLOCK_SCAN_{_algorithm}>;
            __shared__ typename S::TempStorage storage;
            {_type} items[4];
            int base = (blockIdx.x * 128 + threadIdx.x) * 4;
            for (int i = 0; i < 4; ++i) items[i] = x[base + i];
            S(storage).InclusiveSum(items, items);
            for (int i = 0; i < 4; ++i) out[base + i] = items[i];
        }}""",
        128, 2, lambda random, t=_type: [_drawn(t, 1024, random), np.zeros(1024, _TYPES[t])],
        lambda x: np.cumsum(x.astype(np.float64).reshape(2, -1), 1).reshape(-1), 2e-4 if _type == "float" else 0,
    )  # fmt: skip

for _type in ("int", "float", "short", "double"):
    _program(
        f"block radix sort {_type}",
        f"""#include <cub/block/block_radix_sort.cuh>
        extern "C" __global__ void k(const {_type}* x, {_type}* out) {{
            using S = cub::BlockRadixSort<{_type}, 64, 4>;
            __shared__ typename S::TempStorage storage;
            {_type} items[4];
            int base = (blockIdx.x * 64 + threadIdx.x) * 4;
            for (int i = 0; i < 4; ++i) items[i] = x[base + i];
            S(storage).Sort(items);
            for (int i = 0; i < 4; ++i) out[base + i] = items[i];
        }}""",
        64, 2, lambda random, t=_type: [_drawn(t, 512, random), np.zeros(512, _TYPES[t])],
        lambda x: np.sort(x.reshape(2, -1), 1).reshape(-1),
    )  # fmt: skip

_program(
    "block merge sort",
    """#include <cub/block/block_merge_sort.cuh>
    struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
    extern "C" __global__ void k(const int* x, int* out) {
        using S = cub::BlockMergeSort<int, 128, 4>;
        __shared__ typename S::TempStorage storage;
        int items[4];
        int base = (blockIdx.x * 128 + threadIdx.x) * 4;
        for (int i = 0; i < 4; ++i) items[i] = x[base + i];
        S(storage).Sort(items, Less());
        for (int i = 0; i < 4; ++i) out[base + i] = items[i];
    }""",
    128, 2, lambda random: [_integers(1024)(random), np.zeros(1024, np.int32)],
    lambda x: np.sort(x.reshape(2, -1), 1).reshape(-1), reads_beyond=True,
)  # fmt: skip
_program(
    "block exchange",
    """#include <cub/block/block_exchange.cuh>
    extern "C" __global__ void k(const int* x, int* out) {
        using E = cub::BlockExchange<int, 96, 3>;
        __shared__ typename E::TempStorage storage;
        int items[3];
        for (int i = 0; i < 3; ++i) items[i] = x[blockIdx.x * 288 + threadIdx.x * 3 + i];
        E(storage).BlockedToStriped(items);
        for (int i = 0; i < 3; ++i) out[blockIdx.x * 288 + i * 96 + threadIdx.x] = 2 * items[i];
    }""",
    96, 2, lambda random: [_integers(576)(random), np.zeros(576, np.int32)], lambda x: 2 * x,
)  # fmt: skip
_program(
    "block discontinuity",
    """#include <cub/block/block_discontinuity.cuh>
    #include <cuda/std/functional>
    extern "C" __global__ void k(const int* x, int* out) {
        using D = cub::BlockDiscontinuity<int, 128>;
        __shared__ typename D::TempStorage storage;
        int items[2] = {x[threadIdx.x * 2], x[threadIdx.x * 2 + 1]}, flags[2];
        D(storage).FlagHeads(flags, items, cuda::std::not_equal_to<int>());
        out[threadIdx.x * 2] = flags[0]; out[threadIdx.x * 2 + 1] = flags[1];
    }""",
    128, 1, lambda random: [np.sort(random.integers(0, 60, 256)).astype(np.int32), np.zeros(256, np.int32)],
    lambda x: np.concatenate([[1], x[1:] != x[:-1]]),
)  # fmt: skip
for _algorithm in ("SORT", "ATOMIC"):
    _program(
        f"block histogram {_algorithm.lower()}",
        f"""#include <cub/block/block_histogram.cuh>
        extern "C" __global__ void k(const unsigned char* x, unsigned* out) {{
            using H = cub::BlockHistogram<unsigned char, 128, 4, 256, cub::BLOCK_HISTO_{_algorithm}>;
            __shared__ typename H::TempStorage storage;
            __shared__ unsigned counts[256];
            unsigned char items[4];
            for (int i = 0; i < 4; ++i) items[i] = x[threadIdx.x * 4 + i];
            H(storage).Histogram(items, counts);
            __syncthreads();
            for (int i = threadIdx.x; i < 256; i += 128) out[i] = counts[i];
        }}""",
        128, 1, lambda random: [random.integers(0, 200, 512).astype(np.uint8), np.zeros(256, np.uint32)],
        lambda x: np.bincount(x, minlength=256),
    )  # fmt: skip
_program(
    "warp scan and exchange",
    """#include <cub/warp/warp_scan.cuh>
    #include <cub/warp/warp_exchange.cuh>
    extern "C" __global__ void k(const int* x, int* out) {
        using S = cub::WarpScan<int>;
        using E = cub::WarpExchange<int, 2>;
        __shared__ typename S::TempStorage scan[2];
        __shared__ typename E::TempStorage exchange[2];
        int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum;
        S(scan[warp]).ExclusiveSum(x[threadIdx.x], sum);
        int items[2] = {sum, -sum};
        E(exchange[warp]).BlockedToStriped(items, items);
        out[warp * 64 + lane] = items[0]; out[warp * 64 + 32 + lane] = items[1];
    }""",
    64, 1, lambda random: [_integers(64)(random), np.zeros(128, np.int32)],
    lambda x: np.stack([s := np.cumsum(x.reshape(2, 32), 1) - x.reshape(2, 32), -s], 2).reshape(-1),
)  # fmt: skip

# ---- warps ---------------------------------------------------------------------------------------
_program(
    "shuffles",
    """extern "C" __global__ void k(const int* x, int* out) {
        int v = x[threadIdx.x], lane = threadIdx.x % 32;
        int up = __shfl_up_sync(0xffffffff, v, 3), down = __shfl_down_sync(0xffffffff, v, 5, 16);
        int one = __shfl_sync(0xffffffff, v, lane * 7, 8), across = __shfl_xor_sync(0xffffffff, v, 9);
        out[threadIdx.x] = up + 3 * down + 5 * one + 7 * across;
    }""",
    64, 1, lambda random: [_integers(64)(random), np.zeros(64, np.int32)],
    lambda x: np.concatenate([
        w[np.where(lane >= 3, lane - 3, lane)] + 3 * w[np.where(lane % 16 + 5 < 16, lane + 5, lane)]
        + 5 * w[lane // 8 * 8 + lane * 7 % 8] + 7 * w[lane ^ 9] for w in x.reshape(2, 32) for lane in [np.arange(32)]
    ]),
)  # fmt: skip
_program(
    "votes in a branch",
    """extern "C" __global__ void k(const int* x, unsigned* out) {
        int v = x[threadIdx.x];
        unsigned found;
        if (v > 0) {
            unsigned mask = __activemask();
            found = __ballot_sync(mask, v > 500) + __popc(mask);
            if (__any_sync(mask, v > 990)) found += 7;
        } else {
            found = __brev(__match_any_sync(__activemask(), v & 3));
        }
        __syncwarp();
        out[threadIdx.x] = found;
    }""",
    96, 1, lambda random: [_integers(96)(random), np.zeros(96, np.uint32)],
    lambda x: np.concatenate([_votes(w) for w in x.reshape(3, 32)]),
)  # fmt: skip


def _votes(w: np.ndarray) -> np.ndarray:
    lane = np.arange(32)
    bits = np.uint32(1) << lane.astype(np.uint32)
    some = w > 0
    ballot = int(bits[some & (w > 500)].sum()) + int(some.sum()) + 7 * bool((w > 990).any())
    found = np.zeros(32, np.uint32)
    for n in lane:
        same = int(bits[~some & (w & 3 == w[n] & 3)].sum())
        found[n] = ballot if some[n] else int(f"{same:032b}"[::-1], 2)
    return found


_program(
    "warp reductions",
    """extern "C" __global__ void k(const int* x, int* out) {
        int v = x[threadIdx.x];
        out[threadIdx.x] = __reduce_add_sync(~0u, v) + 3 * __reduce_max_sync(~0u, v) + 5 * __reduce_min_sync(~0u, v)
            + (int)__reduce_xor_sync(~0u, (unsigned)v) + __syncthreads_count(v > 0) + 2 * __syncthreads_or(v == 11);
    }""",
    64, 1, lambda random: [_integers(64)(random), np.zeros(64, np.int32)],
    lambda x: np.concatenate([
        np.full(32, w.sum() + 3 * w.max() + 5 * w.min() + np.bitwise_xor.reduce(w) + (x > 0).sum() + 2 * (x == 11).any())
        for w in x.reshape(2, 32)
    ]),
)  # fmt: skip
_program(
    "divergent loops",
    """__device__ __noinline__ int collatz(int n, int* steps) {
        while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; if (++*steps > 1000) return -1; }
        return n;
    }
    extern "C" __global__ void k(const int* x, int* out) {
        int steps = 0, end = collatz(x[threadIdx.x], &steps), sum = 0;
        switch (x[threadIdx.x] % 5) {
            case 0: sum = steps; break;
            case 1: sum = -steps;  // goes on
            case 2: sum += 100; break;
            case 3: for (int i = 0; i < steps; ++i) { if (i % 3 == 0) continue; if (i > 50) break; sum += i; } break;
            default: sum = end;
        }
        out[threadIdx.x] = sum;
    }""",
    128, 1, lambda random: [random.integers(1, 3000, 128).astype(np.int32), np.zeros(128, np.int32)],
    lambda x: np.array([_collatz(int(n)) for n in x]),
)  # fmt: skip


def _collatz(n: int) -> int:
    start, steps = n, 0
    while n != 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    loop = sum(i for i in range(min(steps, 51)) if i % 3)
    return [steps, 100 - steps, 100, loop, 1][start % 5]


# ---- memory --------------------------------------------------------------------------------------
_program(
    "spaces",
    """__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    __device__ int count = 5;
    extern __shared__ int dynamic[];
    __device__ __noinline__ int at(const int* p, int i) { return p[i]; }
    extern "C" __global__ void k(const int* x, int* out) {
        __shared__ int fixed[64];
        int mine[16];
        for (int i = 0; i < 16; ++i) mine[i] = x[(threadIdx.x + i) % 64] * i;
        fixed[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        int which = x[threadIdx.x] & 15;
        out[threadIdx.x] = at(mine, which) + at(fixed, which) + table[which & 7] + at(x, which) + count;
    }""",
    64, 1, lambda random: [_integers(64)(random), np.zeros(64, np.int32)],
    lambda x: np.array([
        x[(n + (x[n] & 15)) % 64] * (x[n] & 15) + 2 * x[x[n] & 15] + [3, 1, 4, 1, 5, 9, 2, 6][x[n] & 7] + 5 for n in range(64)
    ]),
)  # fmt: skip
_program(
    "vectors of memory",
    """extern "C" __global__ void k(const float4* x, const short4* y, double2* out) {
        float4 a = x[threadIdx.x]; short4 b = y[threadIdx.x];
        out[threadIdx.x] = make_double2(a.x * b.x + a.y * b.y, (double)a.z * b.z - (double)a.w * b.w);
    }""",
    64, 1,
    lambda random: [random.integers(-9, 9, (64, 4)).astype(np.float32), _integers(256, np.int16)(random).reshape(64, 4), np.zeros((64, 2))],
    lambda x, y: np.stack([(x * y)[:, :2].sum(1), x[:, 2] * y[:, 2] - x[:, 3] * y[:, 3]], 1),
)  # fmt: skip
_program(
    "atomics in shared memory",
    """extern "C" __global__ void k(const int* x, int* out) {
        __shared__ int bins[10]; __shared__ unsigned turns; __shared__ unsigned long long wide;
        if (threadIdx.x < 10) bins[threadIdx.x] = threadIdx.x == 6 ? -1 : 0;
        if (threadIdx.x == 0) { turns = 0; wide = 0; }
        __syncthreads();
        int v = x[threadIdx.x];
        atomicAdd(&bins[0], v); atomicMax(&bins[1], v); atomicMin(&bins[2], v); atomicXor(&bins[3], v);
        atomicOr(&bins[4], v & 255); atomicSub(&bins[5], v); atomicAnd(&bins[6], v | 15); atomicInc(&turns, 100); atomicAdd(&wide, 1ull << 33);
        int old = bins[7], seen;
        do { seen = old; old = atomicCAS(&bins[7], seen, seen + (v & 7)); } while (old != seen);
        atomicExch(&bins[8], 42);
        __syncthreads();
        if (threadIdx.x < 10) out[threadIdx.x] = bins[threadIdx.x];
        if (threadIdx.x == 10) { out[10] = turns; out[11] = (int)(wide >> 33); }
    }""",
    256, 1, lambda random: [_integers(256)(random), np.zeros(12, np.int32)],
    lambda x: np.array([
        x.sum(), max(0, x.max()), min(0, x.min()), np.bitwise_xor.reduce(x), np.bitwise_or.reduce(x & 255), -x.sum(),
        np.bitwise_and.reduce(x | 15), (x & 7).sum(), 42, 0, 256 % 101, 256,
    ]),
)  # fmt: skip
_program(
    "last block",
    """__device__ unsigned done = 0;
    extern "C" __global__ void k(const int* x, int* parts, int* out) {
        __shared__ bool last;
        int sum = __reduce_add_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
        if (threadIdx.x == 0) { parts[blockIdx.x] = sum; __threadfence(); last = atomicAdd(&done, 1) == gridDim.x - 1; }
        __syncthreads();
        if (last) {
            volatile int* p = parts;
            int total = 0;
            for (int i = threadIdx.x; i < gridDim.x; i += 32) total += p[i];
            total = __reduce_add_sync(~0u, total);
            if (threadIdx.x == 0) out[0] = total;
        }
    }""",
    32, 300, lambda random: [_integers(9600)(random), np.zeros(300, np.int32), np.zeros(1, np.int32)], lambda x, p: x.sum(),
)  # fmt: skip
_program(
    "look back",
    """__device__ int ticket = 0;
    extern "C" __global__ void k(const int* x, int* flags, int* sums, int* out) {
        __shared__ int block, before;
        if (threadIdx.x == 0) block = atomicAdd(&ticket, 1);
        __syncthreads();
        int v = x[block * 32 + threadIdx.x];
        for (int i = 1; i < 32; i *= 2) { int u = __shfl_up_sync(~0u, v, i); if (threadIdx.x >= i) v += u; }
        if (threadIdx.x == 31) {
            before = 0;
            if (block) { while (atomicAdd(&flags[block - 1], 0) == 0) __nanosleep(20); __threadfence(); before = ((volatile int*)sums)[block - 1]; }
            sums[block] = before + v; __threadfence(); atomicExch(&flags[block], 1);
        }
        __syncthreads();
        out[block * 32 + threadIdx.x] = before + v;
    }""",
    32, 300,
    lambda random: [_integers(9600)(random), np.zeros(300, np.int32), np.zeros(300, np.int32), np.zeros(9600, np.int32)],
    lambda x, f, s: np.cumsum(x),
)  # fmt: skip

# ---- arithmetic ----------------------------------------------------------------------------------
_program(
    "integer intrinsics",
    """extern "C" __global__ void k(const unsigned* x, const unsigned* y, unsigned* out) {
        unsigned a = x[threadIdx.x], b = y[threadIdx.x], *o = out + threadIdx.x * 16;
        o[0] = __clz(a); o[1] = __popc(a); o[2] = __brev(a); o[3] = __ffs(a); o[4] = __byte_perm(a, b, 0x5263);
        o[5] = __funnelshift_l(a, b, b & 63); o[6] = __funnelshift_rc(a, b, b & 63); o[7] = __umulhi(a, b);
        o[8] = __mulhi((int)a, (int)b); o[9] = __dp4a((int)a, (int)b, 7); o[10] = __usad(a, b, 3); o[11] = __umul24(a, b);
        unsigned long long w = ((unsigned long long)a << 32 | b) * 0x9E3779B97F4A7C15ull;
        o[12] = __umul64hi(w, w ^ b) >> 32; o[13] = __clzll(w); o[14] = __vadd4(a, b); o[15] = (int)a >> (b & 31);
    }""",
    64, 1,
    lambda random: [random.integers(0, 1 << 32, 64, dtype=np.uint32) >> np.uint32(i) for i in (3, 0)] + [np.zeros((64, 16), np.uint32)],
    lambda x, y: np.array([_intrinsics(int(a), int(b)) for a, b in zip(x, y)], np.uint32),
)  # fmt: skip


def _signed(a: int) -> int:
    return a - (1 << 32) if a >> 31 else a


def _intrinsics(a: int, b: int) -> list[int]:
    bytes_ = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    sides = [[v - 256 if v > 127 else v for v in part] for part in (bytes_[:4], bytes_[4:])]
    n, both = b & 63, b << 32 | a
    w = both_w = (a << 32 | b) * 0x9E3779B97F4A7C15 % (1 << 64)
    found = [
        32 - a.bit_length(), a.bit_count(), int(f"{a:032b}"[::-1], 2), (a & -a).bit_length(),
        sum(bytes_[s] << 8 * i for i, s in enumerate((3, 6, 2, 5))), (both << (n & 31)) >> 32, both >> min(n, 32), a * b >> 32,
        _signed(a) * _signed(b) >> 32, sum(p * q for p, q in zip(*sides)) + 7, abs(a - b) + 3,
        (a & 0xFFFFFF) * (b & 0xFFFFFF), (w * (w ^ b) >> 64) >> 32, 64 - both_w.bit_length(),
        sum(((p + q) & 255) << 8 * i for i, (p, q) in enumerate(zip(bytes_[:4], bytes_[4:]))), _signed(a) >> (b & 31),
    ]  # fmt: skip
    return [v & 0xFFFFFFFF for v in found]


_program(
    "128-bit sums",
    """extern "C" __global__ void k(const unsigned long long* x, unsigned long long* out) {
        unsigned __int128 a = (unsigned __int128)x[threadIdx.x] << 64 | x[threadIdx.x + 64], b = a * 3 + x[threadIdx.x];
        b = b * (a ^ 12345) - (a >> 7);
        out[2 * threadIdx.x] = (unsigned long long)b; out[2 * threadIdx.x + 1] = (unsigned long long)(b >> 64);
    }""",
    64, 1, lambda random: [random.integers(0, 1 << 63, 128, dtype=np.uint64), np.zeros((64, 2), np.uint64)],
    lambda x: np.array([_wide(int(a), int(b)) for a, b in zip(x[:64], x[64:])], np.uint64),
)  # fmt: skip


def _wide(high: int, low: int) -> list[int]:
    a = high << 64 | low
    b = (a * 3 + high) * (a ^ 12345) - (a >> 7)
    return [b & (1 << 64) - 1, b >> 64 & (1 << 64) - 1]


_program(
    "directed rounding",
    """extern "C" __global__ void k(const float* x, const float* y, float* out) {
        float a = x[threadIdx.x], b = y[threadIdx.x], *o = out + threadIdx.x * 8;
        o[0] = __fadd_rz(a, b); o[1] = __fmul_ru(a, b); o[2] = __fmaf_rd(a, b, a); o[3] = __fdiv_rz(a, b); o[4] = __fsqrt_ru(fabsf(a));
        o[5] = __double2float_rd((double)a * b); o[6] = __saturatef(a); o[7] = __fmaf_rn(a, b, -__fmul_rn(a, b));
    }""",
    128, 1, lambda random: [random.normal(size=128).astype(np.float32) for _ in range(2)] + [np.zeros((128, 8), np.float32)],
    lambda x, y: np.array([_directed(a, b) for a, b in zip(x, y)], np.float32),
)  # fmt: skip


def _round(exact: Any, how: str) -> np.float32:
    """A fraction as f32: z towards zero, u up, d down."""
    near = np.float32(float(exact))
    from fractions import Fraction

    while Fraction(float(near)) > exact:
        near = np.nextafter(near, np.float32(-np.inf))
    while Fraction(float(np.nextafter(near, np.float32(np.inf)))) <= exact:
        near = np.nextafter(near, np.float32(np.inf))
    if Fraction(float(near)) != exact and (how == "u" or (how == "z" and exact < 0)):
        near = np.nextafter(near, np.float32(np.inf))
    return near


def _directed(x: np.float32, y: np.float32) -> list[np.float32]:
    from fractions import Fraction
    from math import isqrt

    a, b = Fraction(float(x)), Fraction(float(y))
    scale = 1 << 80
    root = isqrt(int(abs(a) * scale * scale))
    return [
        _round(a + b, "z"), _round(a * b, "u"), _round(a * b + a, "d"), _round(a / b, "z"), _round(Fraction(2 * root + 1, 2 * scale), "u"),
        _round(a * b, "d"), np.clip(x, np.float32(0), np.float32(1)), np.float32(float(a * b - Fraction(float(x * y)))),
    ]  # fmt: skip


_program(
    "functions of f64",
    """extern "C" __global__ void k(const double* x, double* out) {
        double a = x[threadIdx.x];
        out[threadIdx.x] = sin(a) + exp(a) + log(fabs(a) + 1) + pow(fabs(a), 1.5) + sqrt(fabs(a)) + atan(a) + fmod(a, 0.7)
            + cbrt(a) + erf(a) + tgamma(fabs(a) + 1) + rint(a) + 1 / (a * a + 1) + rsqrt(a * a + 1);
    }""",
    128, 1, lambda random: [random.normal(size=128) * 3, np.zeros(128)],
    lambda x: np.array([_functions(float(a)) for a in x]), 1e-13,
)  # fmt: skip


def _functions(a: float) -> float:
    import math as m

    return (
        m.sin(a) + m.exp(a) + m.log(abs(a) + 1) + abs(a) ** 1.5 + m.sqrt(abs(a)) + m.atan(a) + m.fmod(a, 0.7)
        + m.cbrt(a) + m.erf(a) + m.gamma(abs(a) + 1) + float(round(a)) + 1 / (a * a + 1) + 1 / m.sqrt(a * a + 1)
    )  # fmt: skip


_program(
    "functions of f32",
    """extern "C" __global__ void k(const float* x, float* out) {
        float a = x[threadIdx.x];
        out[threadIdx.x] = sinf(a) + expf(a) + logf(fabsf(a) + 1) + powf(fabsf(a), 1.5f) + sqrtf(fabsf(a)) + atanf(a)
            + fmodf(a, 0.7f) + tanhf(a) + erff(a) + rintf(a) + 1 / (a * a + 1) + ldexpf(a, 3) + __sinf(a) + __expf(a) + __fdividef(a, 3.f);
    }""",
    128, 1, lambda random: [random.normal(size=128).astype(np.float32) * 3, np.zeros(128, np.float32)],
    lambda x: np.array([_functions_32(float(a)) for a in x]), 1e-5,
)  # fmt: skip


def _functions_32(a: float) -> float:
    import math as m

    seven = float(np.float32(0.7))
    return (
        2 * m.sin(a) + 2 * m.exp(a) + m.log(abs(a) + 1) + abs(a) ** 1.5 + m.sqrt(abs(a)) + m.atan(a) + m.fmod(a, seven)
        + m.tanh(a) + m.erf(a) + float(round(a)) + 1 / (a * a + 1) + 8 * a + a / 3
    )  # fmt: skip


for _type, _header, _dtype in (("__half", "fp16", np.float16), ("__nv_bfloat16", "bf16", _BF16)):
    _two = _type + "2" if _type == "__half" else "__nv_bfloat162"
    _program(
        f"intrinsics of {_header}",
        f"""#include <cuda_{_header}.h>
        extern "C" __global__ void k(const {_two}* x, const {_two}* y, {_two}* out) {{
            {_two} a = x[threadIdx.x], b = y[threadIdx.x], *o = out + threadIdx.x * 6;
            o[0] = __hadd2(a, b); o[1] = __hfma2(a, b, a); o[2] = __hmax2(a, b); o[3] = __hmul2(a, __hneg2(b));
            o[4] = __hsub2(__habs2(a), b); o[5] = __hgt2(a, b);
        }}""",
        64, 1,
        lambda random, d=_dtype: [random.normal(size=(64, 2)).astype(np.float32).astype(d) for _ in range(2)] + [np.zeros((64, 6, 2), d)],
        lambda x, y: np.stack(_halves(x.astype(np.float64), y.astype(np.float64), x.dtype), 1).astype(np.float64),
    )  # fmt: skip


def _halves(x: np.ndarray, y: np.ndarray, dtype: Any) -> list[np.ndarray]:
    found = [x + y, x * y + x, np.maximum(x, y), -x * y, abs(x) - y, (x > y) * 1.0]
    return [a.astype(np.float32).astype(dtype) for a in found]


_program(
    "cooperative groups",
    """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* out) {
        auto block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        int v = x[block.thread_rank()];
        for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_xor(v, i);
        __shared__ int sums[16];
        if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = v;
        block.sync();
        int odd = 0;
        if (block.thread_rank() % 3 == 0) { auto some = cg::coalesced_threads(); odd = some.size() * 100 + some.thread_rank(); some.sync(); }
        out[block.thread_rank()] = sums[block.thread_rank() % 16] + odd;
    }""",
    128, 1, lambda random: [_integers(128)(random), np.zeros(128, np.int32)],
    lambda x: np.tile(x.reshape(16, 8).sum(1), 8) + np.array([_coalesced(n) for n in range(128)]),
)  # fmt: skip


def _coalesced(n: int) -> int:
    if n % 3:
        return 0
    warp = range(n // 32 * 32, n // 32 * 32 + 32)
    mine = [m for m in warp if m % 3 == 0]
    return len(mine) * 100 + mine.index(n)


# ---- arithmetic of every type --------------------------------------------------------------------
_WHOLE = {"short": np.int16, "unsigned short": np.uint16, "int": np.int32, "unsigned": np.uint32,
          "long long": np.int64, "unsigned long long": np.uint64, "signed char": np.int8}  # fmt: skip
for _type, _number in _WHOLE.items():
    _program(
        f"arithmetic of {_type}",
        f"""extern "C" __global__ void k(const {_type}* x, const {_type}* y, {_type}* out) {{
            typedef {_type} T;
            T a = x[threadIdx.x], b = y[threadIdx.x], *o = out + threadIdx.x * 12;
            o[0] = a < b ? a : T(1); o[1] = a <= b ? b : T(2); o[2] = a > b ? a : T(3); o[3] = a >= b ? b : T(4);
            o[4] = a == b; o[5] = a != b; o[6] = a < b ? a : b; o[7] = a > b ? a : b;
            o[8] = b != 0 ? T(a / b) : T(0); o[9] = b != 0 ? T(a % b) : T(0); o[10] = T(a * b); o[11] = T(T(0) - b);
        }}""",
        96, 1,
        lambda random, d=_number: [*(_edges(random, d, 96) for _ in range(2)), np.zeros((96, 12), d)],
        lambda x, y: _whole_arithmetic(x, y),
    )  # fmt: skip


def _edges(random: np.random.Generator, dtype: Any, n: int) -> np.ndarray:
    """Numbers near zero and near the ends of a type."""
    of = np.iinfo(dtype)
    near = np.array([of.min, of.min + 1, 0, 1, of.max - 1, of.max], dtype)
    found = np.where(random.random(n) < 0.3, random.choice(near, n), random.integers(0, 20, n).astype(dtype))
    return np.where(random.random(n) < 0.3, random.integers(of.min, of.max, n, dtype), found).astype(dtype)


def _whole_arithmetic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    of = np.iinfo(x.dtype)

    def one(a: int, b: int) -> list[int]:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
        rest = a - quotient * b if b else 0
        found = [a if a < b else 1, b if a <= b else 2, a if a > b else 3, b if a >= b else 4, a == b, a != b,
                 min(a, b), max(a, b), quotient, rest, a * b, -b]  # fmt: skip
        return [(int(v) - of.min) % (of.max - of.min + 1) + of.min for v in found]

    return np.array([one(int(a), int(b)) for a, b in zip(x, y)], x.dtype)


for _type, _number in (("float", np.float32), ("double", np.float64), ("__half", np.float16)):
    _program(
        f"comparisons of {_type}",
        f"""#include <cuda_fp16.h>
        extern "C" __global__ void k(const {_type}* x, const {_type}* y, int* out) {{
            {_type} a = x[threadIdx.x], b = y[threadIdx.x];
            int *o = out + threadIdx.x * 10;
            o[0] = a < b; o[1] = a <= b; o[2] = a > b; o[3] = a >= b; o[4] = a == b; o[5] = a != b;
            o[6] = !(a < b); o[7] = !(a >= b); o[8] = !(a == b); o[9] = a < b || a > b;
        }}""",
        96, 1,
        lambda random, d=_number: [*(random.choice(np.array([-np.inf, -1, -0.0, 0, 1, 2, np.inf, np.nan], d), 96) for _ in range(2)),
                                   np.zeros((96, 10), np.int32)],
        lambda x, y: np.stack([x < y, x <= y, x > y, x >= y, x == y, x != y, ~(x < y), ~(x >= y), x != y, (x < y) | (x > y)], 1),
    )  # fmt: skip

_program(
    "comparisons of halves by name",
    """#include <cuda_fp16.h>
    extern "C" __global__ void k(const __half* x, const __half* y, int* out) {
        __half a = x[threadIdx.x], b = y[threadIdx.x];
        int *o = out + threadIdx.x * 8;
        o[0] = __hlt(a, b); o[1] = __hle(a, b); o[2] = __hgt(a, b); o[3] = __hge(a, b);
        o[4] = __heq(a, b); o[5] = __hne(a, b); o[6] = __hisnan(a); o[7] = __hneu(a, b);
    }""",
    96, 1,
    lambda random: [*(random.choice(np.array([-np.inf, -1, -0.0, 0, 1, 2, np.inf, np.nan], np.float16), 96) for _ in range(2)),
                    np.zeros((96, 8), np.int32)],
    lambda x, y: np.stack([x < y, x <= y, x > y, x >= y, x == y, (x < y) | (x > y), np.isnan(x), x != y], 1),
)  # fmt: skip
_program(
    "arithmetic of halves by name",
    """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void k(const __half* x, const __half* y, const __nv_bfloat16* z, float* out) {
        __half a = x[threadIdx.x], b = y[threadIdx.x];
        __nv_bfloat16 c = z[threadIdx.x];
        float *o = out + threadIdx.x * 10;
        o[0] = __half2float(__hmul(a, b)); o[1] = __half2float(__hsub(a, b)); o[2] = __half2float(__hneg(a));
        o[3] = __half2float(__habs(a)); o[4] = __half2float(__hmin_nan(a, b)); o[5] = __half2float(__hmax_nan(a, b));
        o[6] = __bfloat162float(__hneg(c)); o[7] = __bfloat162float(__habs(c));
        o[8] = float(double(a) * 3); o[9] = __half2float(__float2half(float(double(a) + 1)));
    }""",
    96, 1,
    lambda random: [random.normal(size=96).astype(np.float16), random.normal(size=96).astype(np.float16),
                    random.normal(size=96).astype(np.float32).astype(_BF16), np.zeros((96, 10), np.float32)],
    lambda x, y, z: np.stack([x * y, x - y, -x, abs(x), np.minimum(x, y), np.maximum(x, y), -z.astype(np.float32),
                              abs(z.astype(np.float32)), x.astype(np.float64) * 3,
                              (x.astype(np.float64) + 1).astype(np.float32).astype(np.float16)], 1),
)  # fmt: skip
_program(
    "roundings and conversions",
    """#include <cuda_bf16.h>
    extern "C" __global__ void k(const float* x, const double* y, const unsigned* u, const signed char* s, double* out) {
        float a = x[threadIdx.x];
        double b = y[threadIdx.x];
        unsigned c = u[threadIdx.x];
        signed char d = s[threadIdx.x];
        double *o = out + threadIdx.x * 14;
        o[0] = floorf(a); o[1] = ceilf(a); o[2] = floor(b); o[3] = ceil(b); o[4] = double((unsigned)fabsf(a));
        o[5] = (float)c; o[6] = (float)__ushort2bfloat16_rn((unsigned short)c); o[7] = (float)__uint2bfloat16_rn(c);
        o[8] = double((long long)d * 1000000007LL); o[9] = double((unsigned long long)(unsigned short)c << 20);
        o[10] = __fsub_rn(a, 1.5f); o[11] = __dsub_rn(b, 1.5); o[12] = isnan(a - a) ? 1.0 : a != 0.5f ? 2.0 : 3.0;
        o[13] = double((signed char)(c >> 3)) + double((int)(short)(c >> 7));
    }""",
    64, 1,
    lambda random: [(random.normal(size=64) * 50).astype(np.float32), random.normal(size=64) * 1e6,
                    random.integers(0, 1 << 32, 64, dtype=np.uint32), random.integers(-128, 128, 64).astype(np.int8),
                    np.zeros((64, 14), np.float64)],
    lambda x, y, u, s: np.stack([
        np.floor(x), np.ceil(x), np.floor(y), np.ceil(y), np.trunc(abs(x)), u.astype(np.float32),
        u.astype(np.uint16).astype(np.float32).astype(_BF16).astype(np.float32), u.astype(np.float32).astype(_BF16).astype(np.float32),
        s.astype(np.float64) * 1000000007, u.astype(np.uint16).astype(np.float64) * (1 << 20), x - np.float32(1.5), y - 1.5,
        np.where(x != 0.5, 2.0, 3.0), (u >> 3).astype(np.int8).astype(np.float64) + (u >> 7).astype(np.int16)], 1),
    1e-2,
)  # fmt: skip
for _type, _number in (("int", np.int32), ("unsigned", np.uint32), ("long long", np.int64)):
    _program(
        f"atomic extremes of {_type}",
        f"""extern "C" __global__ void k(const {_type}* x, {_type}* out) {{
            {_type} a = x[blockIdx.x * 64 + threadIdx.x];
            atomicMax(out, a); atomicMin(out + 1, a);
        }}""",
        64, 3, lambda random, d=_number: [random.integers(0, 1000, 192).astype(d), np.array([0, 2000], d)],
        lambda x: np.array([x.max(), x.min()]),
    )  # fmt: skip
_program(
    "atomic bits of 64",
    """extern "C" __global__ void k(const unsigned long long* x, unsigned long long* out) {
        unsigned long long a = x[blockIdx.x * 64 + threadIdx.x];
        atomicOr(out, a); atomicAdd(out + 1, a);
    }""",
    64, 3, lambda random: [random.integers(0, 1 << 62, 192).astype(np.uint64) & np.uint64(0x3FF0F0F0F0F0F0F0), np.zeros(2, np.uint64)],
    lambda x: np.array([np.bitwise_or.reduce(x), x.sum(dtype=np.uint64)]),
)  # fmt: skip
for _type, _number, _count in (
    ("signed char", np.int8, 1), ("char2", np.int8, 2), ("unsigned char", np.uint8, 1), ("short", np.int16, 1),
    ("short2", np.int16, 2), ("short4", np.int16, 4), ("int", np.int32, 1), ("int2", np.int32, 2), ("int4", np.int32, 4),
    ("long long", np.int64, 1), ("float4", np.float32, 4), ("uchar4", np.uint8, 4), ("uchar2", np.uint8, 2),
    ("ushort2", np.uint16, 2), ("ushort4", np.uint16, 4), ("uint2", np.uint32, 2), ("float2", np.float32, 2),
):  # fmt: skip
    _program(
        f"cached reads of {_type}",
        f"""extern "C" __global__ void k(const {_type}* __restrict__ x, {_type}* __restrict__ out) {{
            out[threadIdx.x] = __ldg(x + (threadIdx.x * 5 + 1) % 64);
        }}""",
        64, 1,
        lambda random, d=_number, n=_count: [random.integers(0, 100, (64, n)).astype(d), np.zeros((64, n), d)],
        lambda x: x[(np.arange(64) * 5 + 1) % 64],
    )  # fmt: skip
_program(
    "funnel shifts and fields",
    """extern "C" __global__ void k(const unsigned* x, const unsigned* y, unsigned* out) {
        unsigned a = x[threadIdx.x], b = y[threadIdx.x], s = b % 32, *o = out + threadIdx.x * 3;
        o[0] = __funnelshift_r(a, b, s); o[1] = __funnelshift_l(a, b, s);
        o[2] = (unsigned)(((long long)(((unsigned long long)a << 32) | b) << 8) >> 40);
    }""",
    64, 1,
    lambda random: [random.integers(0, 1 << 32, 64, dtype=np.uint32), random.integers(0, 1 << 32, 64, dtype=np.uint32), np.zeros((64, 3), np.uint32)],
    lambda x, y: np.array([_funnel(int(a), int(b)) for a, b in zip(x, y)], np.uint32),
)  # fmt: skip


def _funnel(a: int, b: int) -> list[int]:
    mask, s, both = (1 << 32) - 1, b % 32, b << 32 | a
    field = (((a << 32 | b) << 8) & (1 << 64) - 1) >> 40
    field -= (1 << 24) * (field >> 23)
    return [both >> s & mask, both << s >> 32 & mask, field & mask]


_program(
    "small numbers",
    """extern "C" __global__ void k(const short* x, const short* y, const signed char* z, long long* out) {
        short a = x[threadIdx.x], b = y[threadIdx.x];
        signed char c = z[threadIdx.x];
        unsigned short u = a;
        long long *o = out + threadIdx.x * 8;
        o[0] = int(a) * int(b); o[1] = short(a - b); o[2] = (unsigned short)(u / 7); o[3] = abs(int(a) * 3);
        o[4] = short(a < 0 ? -a : a); o[5] = (long long)c; o[6] = (unsigned long long)u; o[7] = (signed char)(a + c);
    }""",
    64, 1,
    lambda random: [_edges(random, np.int16, 64), _edges(random, np.int16, 64), _edges(random, np.int8, 64), np.zeros((64, 8), np.int64)],
    lambda x, y, z: np.stack([
        x.astype(np.int64) * y, (x - y).astype(np.int16), x.view(np.uint16) // 7, abs(x.astype(np.int64) * 3),
        np.where(x < 0, -x, x).astype(np.int16), z, x.view(np.uint16), (x + z).astype(np.int8)], 1),
)  # fmt: skip
_program(
    "not less",
    """extern "C" __global__ void k(const long long* x, const long long* y, const unsigned long long* u, const unsigned long long* v,
                                   const float* a, const float* b, int* out) {
        int t = threadIdx.x, n = 0;
        for (long long i = x[t]; i <= y[t]; i += 3) n += 1;
        for (unsigned long long i = u[t]; i <= v[t]; i += 5) n += 100;
        for (long long i = y[t]; i >= x[t]; i -= 7) n += 10000;
        if (isnan(a[t]) || isnan(b[t])) n += 1000000;
        if (!(a[t] < b[t] || a[t] > b[t])) n += 2000000;
        out[t] = n;
    }""",
    64, 1,
    lambda random: [*(random.integers(-20, 20, 64) for _ in range(2)), *(random.integers(0, 40, 64).astype(np.uint64) for _ in range(2)),
                    *(random.choice(np.array([0, 1, np.nan], np.float32), 64) for _ in range(2)), np.zeros(64, np.int32)],
    lambda x, y, u, v, a, b: np.array([
        len(range(x[t], y[t] + 1, 3)) + 100 * len(range(int(u[t]), int(v[t]) + 1, 5)) + 10000 * len(range(y[t], x[t] - 1, -7))
        + 1000000 * int(np.isnan(a[t]) or np.isnan(b[t])) + 2000000 * int(not (a[t] < b[t] or a[t] > b[t])) for t in range(64)]),
)  # fmt: skip

# ---- boxes that a tensor map describes, by NVIDIA's names of instructions --------------------------
_BOX = """#include <cuda/ptx>
    namespace ptx = cuda::ptx;
    struct alignas(64) Map { unsigned long long words[16]; };
    extern "C" __global__ void k(const __grid_constant__ Map map, float* out) {
        __shared__ alignas(128) float tile[128];
        __shared__ unsigned long long there;
        unsigned long long* barrier = &there;
        if (threadIdx.x == 0) {
            ptx::mbarrier_init(barrier, blockDim.x);
            ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            const int at[RANK] = AT;
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, sizeof(tile));
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at, barrier);
        } else {
            ptx::mbarrier_arrive(barrier);
        }
        while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {}
        out[blockIdx.x * 128 + threadIdx.x] = tile[threadIdx.x];
    }"""
_program(
    "boxes of two dimensions", _BOX.replace("RANK", "2").replace("AT", "{16 * (int)blockIdx.x, 3}"), 128, 3,
    lambda random: [random.normal(size=(9, 40)).astype(np.float32), np.zeros((3, 8, 16), np.float32)],
    lambda x: np.pad(x, ((0, 2), (0, 8)))[3:].reshape(8, 3, 16).swapaxes(0, 1),
    architectures=(90,), boxes={0: (16, 8)},
)  # fmt: skip
_program(
    "boxes of four dimensions", _BOX.replace("RANK", "4").replace("AT", "{4, 1, -1, (int)blockIdx.x}"), 128, 3,
    lambda random: [random.normal(size=(3, 2, 5, 12)).astype(np.float32), np.zeros((3, 4, 4, 8), np.float32)],
    lambda x: np.pad(x[:, :, 1:, 4:], ((0, 0), (1, 1), (0, 0), (0, 0))),
    architectures=(90,), boxes={0: (8, 4, 4, 1)},
)  # fmt: skip
# ---- products of a warp by `nvcuda::wmma` ----------------------------------------------------------
for _type, _sum, _number, _total, _shape, _orders in (
    ("half", "float", np.float16, np.float32, (16, 16, 16), ("row", "col")),
    ("half", "half", np.float16, np.float16, (16, 16, 16), ("col", "row")),
    ("half", "float", np.float16, np.float32, (32, 8, 16), ("row", "row")),
    ("__nv_bfloat16", "float", _BF16, np.float32, (16, 16, 16), ("row", "row")),
    ("__nv_bfloat16", "float", _BF16, np.float32, (8, 32, 16), ("col", "col")),
    ("signed char", "int", np.int8, np.int32, (16, 16, 16), ("row", "col")),
    ("unsigned char", "int", np.uint8, np.int32, (32, 8, 16), ("col", "row")),
    ("double", "double", np.float64, np.float64, (8, 8, 4), ("row", "col")),
):
    _m, _n, _k = _shape
    _program(
        f"wmma {_type} {_sum} {_m} {_n} {' '.join(_orders)}",
        f"""#include <mma.h>
        #include <cuda_bf16.h>
        using namespace nvcuda;
        extern "C" __global__ void k(const {_type}* a, const {_type}* b, const {_sum}* c, {_sum}* out) {{
            wmma::fragment<wmma::matrix_a, {_m}, {_n}, {_k}, {_type}, wmma::{_orders[0]}_major> left;
            wmma::fragment<wmma::matrix_b, {_m}, {_n}, {_k}, {_type}, wmma::{_orders[1]}_major> right;
            wmma::fragment<wmma::accumulator, {_m}, {_n}, {_k}, {_sum}> sums;
            int warp = threadIdx.x / 32;
            wmma::load_matrix_sync(sums, c + warp * {_m * _n}, {_n}, wmma::mem_row_major);
            for (int k = 0; k < 3; ++k) {{
                wmma::load_matrix_sync(left, a + warp * {3 * _m * _k} + k * {_k if _orders[0] == "row" else _m * _k},
                                       {3 * _k if _orders[0] == "row" else _m});
                wmma::load_matrix_sync(right, b + warp * {3 * _n * _k} + k * {_k if _orders[1] == "col" else _n * _k},
                                       {3 * _k if _orders[1] == "col" else _n});
                wmma::mma_sync(sums, left, right, sums);
            }}
            for (int i = 0; i < sums.num_elements; ++i) sums.x[i] = sums.x[i] + sums.x[i];
            __shared__ {_sum} tile[2 * {_m * _n}];
            wmma::store_matrix_sync(tile + warp * {_m * _n}, sums, {_m}, wmma::mem_col_major);
            __syncthreads();
            for (int i = threadIdx.x; i < 2 * {_m * _n}; i += 64) out[i] = tile[i];
        }}""",
        64, 1,
        lambda random, t=_number, s=_total, m=_m, n=_n, k=_k: [
            random.integers(0 if t == np.uint8 else -9, 9, 6 * m * k).astype(t), random.integers(0 if t == np.uint8 else -9, 9, 6 * n * k).astype(t),
            random.integers(-9, 9, 2 * m * n).astype(s), np.zeros((2, n, m), s)],
        lambda a, b, c, m=_m, n=_n, k=_k, orders=_orders: 2 * _transposed(
            c.astype(np.float64).reshape(2, m, n)
            + (a.astype(np.float64).reshape(2, m, 3 * k) if orders[0] == "row" else _transposed(a.astype(np.float64).reshape(2, 3 * k, m)))
            @ (b.astype(np.float64).reshape(2, 3 * k, n) if orders[1] == "row" else _transposed(b.astype(np.float64).reshape(2, n, 3 * k)))),
    )  # fmt: skip


def _transposed(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(1, 2)


# ---- cooperative groups ----------------------------------------------------------------------------
_program(
    "tiles of a block",
    """#include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* out) {
        cg::thread_block block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        int a = x[block.group_index().x * block.size() + block.thread_rank()];
        int *o = out + (block.group_index().x * block.size() + block.thread_rank()) * 6;
        o[0] = cg::reduce(tile, a, cg::plus<int>());
        o[1] = cg::reduce(tile, a, cg::greater<int>());
        o[2] = cg::inclusive_scan(tile, a);
        o[3] = tile.shfl(a, (tile.thread_rank() + 3) % 8) + 100 * tile.meta_group_rank();
        o[4] = tile.any(a > 900) + 2 * tile.all(a > -900);
        __shared__ int part[16];
        if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = a;
        block.sync();
        o[5] = part[(tile.meta_group_rank() + 1) % tile.meta_group_size()];
    }""",
    128, 2, lambda random: [_integers(256)(random), np.zeros((256, 6), np.int32)],
    lambda x: np.stack([
        np.repeat(x.reshape(-1, 8).sum(1), 8), np.repeat(x.reshape(-1, 8).max(1), 8), np.cumsum(x.reshape(-1, 8), 1).reshape(-1),
        np.roll(x.reshape(-1, 8), -3, 1).reshape(-1) + 100 * np.tile(np.arange(128) // 8, 2),
        np.repeat((x.reshape(-1, 8) > 900).any(1) + 2 * (x.reshape(-1, 8) > -900).all(1), 8),
        np.repeat(np.roll(x.reshape(2, 16, 8)[:, :, 0], -1, 1), 8),
    ], 1),
)  # fmt: skip
_program(
    "threads that are together",
    """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const int* x, int* out) {
        int a = x[threadIdx.x], *o = out + threadIdx.x * 3;
        o[0] = o[1] = o[2] = 0;
        if (a % 3 == 0) {
            cg::coalesced_group some = cg::coalesced_threads();
            o[0] = some.size(); o[1] = some.thread_rank(); o[2] = some.shfl(a, 0);
        }
    }""",
    64, 1, lambda random: [_integers(64)(random), np.zeros((64, 3), np.int32)],
    lambda x: np.concatenate([_together(part) for part in x.reshape(2, 32)]),
)  # fmt: skip


def _together(x: np.ndarray) -> np.ndarray:
    some = x % 3 == 0
    return np.stack([some * some.sum(), some * (np.cumsum(some) - 1), some * x[np.argmax(some)]], 1)
