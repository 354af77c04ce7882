"""Programs in Triton's language, which `make_triton_ptx.py` compiles; what they compute is in `triton_programs.py`."""

# Triton gives a kernel's parameters their types when it is compiled.

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def elementwise(x, y, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside)
    if KIND == "add":
        c = a + b
    elif KIND == "fma":
        c = a * b + a
    elif KIND == "divide":
        c = a / b
    elif KIND == "remainder":
        c = a % b
    elif KIND == "floor divide":
        c = a // b
    elif KIND == "minimum":
        c = tl.minimum(a, b)
    elif KIND == "maximum nan":
        c = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif KIND == "minimum nan":
        c = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif KIND == "select":
        c = tl.where(a < b, a, b * 2)
    elif KIND == "exact exp":
        c = libdevice.exp(a) + b
    elif KIND == "exp":
        c = tl.exp(a) + b
    elif KIND == "transcendental":
        c = tl.sin(a) * tl.cos(b) + tl.log(tl.abs(a) + 1) + tl.sqrt(tl.abs(b)) + tl.rsqrt(b * b + 1)
    elif KIND == "erf":
        c = tl.erf(a) * tl.exp2(b) + tl.log2(tl.abs(a) + 1)
    elif KIND == "rounding":
        c = tl.floor(a) + tl.ceil(b)
    elif KIND == "bits":
        c = ((a << 3) ^ (b >> 2)) | (a & ~b)
    elif KIND == "high product":
        c = tl.umulhi(a, b)
    elif KIND == "absolute":
        c = tl.abs(a)
    elif KIND == "seventh":
        c = a // 7
    elif KIND == "field":
        c = ((a << 8) >> 40) + b
    elif KIND == "order":
        c = tl.where(a <= b, 1, 0) + tl.where(a >= b, 2, 0) + tl.where(a == b, 4, 0)
    elif KIND == "nan":
        c = tl.where(a != a, b, a)
    tl.store(out + at, c.to(out.dtype.element_ty), mask=inside)


@triton.jit
def convert(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside).to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    a = tl.exp(a - tl.max(a, axis=0))
    a = a / tl.sum(a, axis=0)
    tl.store(out + row * columns + at, a.to(out.dtype.element_ty), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    a = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(a, axis=0) / columns
    apart = tl.where(inside, a - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    w = tl.load(weight + at, mask=inside)
    b = tl.load(bias + at, mask=inside)
    tl.store(
        out + row * columns + at, (apart * scale * w + b).to(out.dtype.element_ty), mask=inside
    )


@triton.jit
def reduce_columns(
    x, out, rows, columns, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (at < columns)[None, :]
        total += tl.load(x + row[:, None] * columns + at[None, :], mask=inside, other=0.0)
    tl.store(out + at, tl.sum(total, axis=0), mask=at < columns)


@triton.jit
def scan_rows(x, out, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    a = tl.load(x + at)
    if KIND == "sum":
        a = tl.cumsum(a, axis=1)
    elif KIND == "product":
        a = tl.cumprod(a, axis=1)
    elif KIND == "sort":
        a = tl.sort(a, dim=1)
    elif KIND == "reversed sum":
        a = tl.cumsum(a, axis=1, reverse=True)
    tl.store(out + at, a)


@triton.jit
def reduce_rows(x, out, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    a = tl.load(x + row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    if KIND == "argmax":
        r = tl.argmax(a, axis=1)
    elif KIND == "xor":
        r = tl.xor_sum(a, axis=1)
    elif KIND == "minimum":
        r = tl.min(a, axis=1)
    elif KIND == "sum":
        r = tl.sum(a, axis=1)
    tl.store(out + row, r.to(out.dtype.element_ty))


@triton.jit
def transpose(x, out, rows, columns, SIDE: tl.constexpr):
    r = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    c = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    a = tl.load(
        x + r[:, None] * columns + c[None, :], mask=(r < rows)[:, None] & (c < columns)[None, :]
    )
    tl.store(
        out + c[:, None] * rows + r[None, :],
        tl.trans(a),
        mask=(c < columns)[:, None] & (r < rows)[None, :],
    )


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.histogram(tl.load(x + at), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), bins)


@triton.jit
def atomics(x, place, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    to = out + tl.load(place + at, mask=inside, other=0)
    if KIND == "add":
        tl.atomic_add(to, a, mask=inside)
    elif KIND == "max":
        tl.atomic_max(to, a, mask=inside)
    elif KIND == "and":
        tl.atomic_and(to, a, mask=inside)
    elif KIND == "xchg":
        tl.atomic_xchg(to, a, mask=inside)


@triton.jit
def locked_sum(x, lock, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + tl.program_id(0) * BLOCK + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + a)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def matmul(
    a, b, c, M, N, K, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros(
        (BM, BN),
        tl.int32
        if KIND == "integer" or KIND == "integer transposed"
        else tl.float64
        if KIND == "double"
        else tl.float32,
    )
    for k in range(0, K, BK):
        x = tl.load(a + row[:, None] * K + (k + inner)[None, :])
        if KIND == "transposed" or KIND == "integer transposed":
            y = tl.trans(tl.load(b + column[:, None] * K + (k + inner)[None, :]))
        else:
            y = tl.load(b + (k + inner)[:, None] * N + column[None, :])
        if KIND == "ieee":
            total = tl.dot(x, y, total, input_precision="ieee")
        elif KIND == "three":
            total = tl.dot(x, y, total, input_precision="tf32x3")
        elif KIND == "integer" or KIND == "integer transposed":
            total = tl.dot(x, y, total, out_dtype=tl.int32)
        elif KIND == "double":
            total = tl.dot(x, y, total, out_dtype=tl.float64)
        else:
            total = tl.dot(x, y, total)
    tl.store(c + row[:, None] * N + column[None, :], total.to(c.dtype.element_ty))


@triton.jit
def split_matmul(
    a, b, c, M, N, K, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * PART
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(first, first + PART, BK):
        inner = k + tl.arange(0, BK)
        total = tl.dot(
            tl.load(a + row[:, None] * K + inner[None, :]),
            tl.load(b + inner[:, None] * N + column[None, :]),
            total,
        )
    tl.atomic_add(c + row[:, None] * N + column[None, :], total)


@triton.jit
def descriptor_matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(c.dtype))


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    n,
    scale,
    CAUSAL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
):
    at = tl.arange(0, D)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1) * n * D
    queries = tl.load(q + base + row[:, None] * D + at[None, :])
    top = tl.zeros((BM,), tl.float32) - float("inf")
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else n
    for first in range(0, end, BN):
        column = first + tl.arange(0, BN)
        keys = tl.load(k + base + column[:, None] * D + at[None, :])
        scores = tl.dot(queries, tl.trans(keys)) * scale
        if CAUSAL:
            scores = tl.where(row[:, None] >= column[None, :], scores, -1e30)
        new = tl.maximum(top, tl.max(scores, 1))
        part = tl.exp(scores - new[:, None])
        fade = tl.exp(top - new)
        weight = weight * fade + tl.sum(part, 1)
        values = tl.load(v + base + column[:, None] * D + at[None, :])
        total = tl.dot(part.to(values.dtype), values, total * fade[:, None])
        top = new
    tl.store(
        out + base + row[:, None] * D + at[None, :],
        (total / weight[:, None]).to(out.dtype.element_ty),
    )


@triton.jit
def chain(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    a, b = a.to(tl.float32), tl.load(y + at, mask=inside).to(tl.float32)
    tl.store(out + at, (tl.exp(-a * a) * b + a).to(out.dtype.element_ty), mask=inside)


@triton.jit
def chain_exact(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    a, b = a.to(tl.float32), tl.load(y + at, mask=inside).to(tl.float32)
    tl.store(out + at, (libdevice.exp(-a * a) * b + a).to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax_exact(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    a = libdevice.exp(a - tl.max(a, axis=0))
    a = tl.div_rn(a, tl.broadcast_to(tl.sum(a, axis=0), [BLOCK]))
    tl.store(out + row * columns + at, a.to(out.dtype.element_ty), mask=at < columns)


@triton.jit
def sum_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(a, axis=0))


@triton.jit
def fast_attention(
    q, k, v, out, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    at = tl.arange(0, D)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    base = tl.program_id(1) * n * D
    queries = tl.load(q + base + row[:, None] * D + at[None, :])
    top = tl.zeros((BM,), tl.float32) - float("inf")
    weight = tl.zeros((BM,), tl.float32) + 1
    total = tl.zeros((BM, D), tl.float32)
    scale *= 1.44269504
    for first in range(0, n, BN):
        column = first + tl.arange(0, BN)
        scores = tl.dot(queries, tl.trans(tl.load(k + base + column[:, None] * D + at[None, :])))
        new = tl.maximum(top, tl.max(scores, 1) * scale)
        part = tl.exp2(scores * scale - new[:, None])
        fade = tl.exp2(top - new)
        weight = weight * fade + tl.sum(part, 1)
        values = tl.load(v + base + column[:, None] * D + at[None, :])
        total = tl.dot(part.to(values.dtype), values, total * fade[:, None])
        top = new
    tl.store(
        out + base + row[:, None] * D + at[None, :],
        (total / weight[:, None]).to(out.dtype.element_ty),
    )


@triton.jit
def attention_gradient(
    q, k, v, d_out, weights, products, out, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    at = tl.arange(0, D)
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    head = tl.program_id(1)
    base, size = head * n * D, tl.num_programs(1) * n * D
    mine = base + column[:, None] * D + at[None, :]
    keys, values = tl.load(k + mine), tl.load(v + mine)
    d_keys = tl.zeros((BN, D), tl.float32)
    d_values = tl.zeros((BN, D), tl.float32)
    for first in range(0, n, BM):
        row = first + tl.arange(0, BM)
        theirs = base + row[:, None] * D + at[None, :]
        queries, d_row = tl.load(q + theirs), tl.load(d_out + theirs)
        scores = tl.dot(keys, tl.trans(queries)) * scale
        part = tl.exp(scores - tl.load(weights + head * n + row)[None, :])
        d_values += tl.dot(part.to(d_row.dtype), d_row)
        d_part = tl.dot(values, tl.trans(d_row))
        d_scores = part * (d_part - tl.load(products + head * n + row)[None, :]) * scale
        d_scores = d_scores.to(queries.dtype)
        d_keys += tl.dot(d_scores, queries)
        tl.atomic_add(out + theirs, tl.dot(tl.trans(d_scores), keys))
    tl.store(out + size + mine, d_keys)
    tl.store(out + 2 * size + mine, d_values)
