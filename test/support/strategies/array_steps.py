"""Steps of random array programs that compute, and programs of all steps: see array_programs.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from support.strategies.array_moves import move, pick, together, update
from support.strategies.array_programs import LARGEST, Draft, Draw, Program, broadcasts

_UNARY = """np.sin({x}) np.tanh({x}) np.exp(-np.abs({x})) np.abs({x}) -{x} np.sqrt(np.abs({x})+1)
    {x}*{x}*0.25 np.log1p(np.abs({x})) nn.sigmoid({x}) nn.gelu({x}) np.cos({x}) np.exp2({x}*0.1)
    lax.erf({x}) 1.0/(1.0+{x}*{x}) np.square({x})*0.1 nn.softplus({x}) np.cbrt({x}+9)""".split()
_UNARY_EXACT = ["np.abs({x})", "-{x}", "np.maximum({x},0)", "np.clip({x},-1,1)", "np.sign({x})"]
_UNARY_INT = ["{x}^5", "{x}&3", "np.abs({x})%7", "-{x}", "np.maximum({x},1)", "{x}//3", "{x}>>1"]


def program(draw: Draw, steps: int = 10) -> Program:
    """A program of about so many steps."""
    d = Draft(draw)
    arguments = tuple(d.argument(draw(kinds)) for kinds in ("f", "f", "fib"))
    for _ in range(steps):
        draw(_STEPS)(d)
    return d.finished(arguments)


def unary(d: Draft) -> None:
    v = d.any("fi")
    if v is None:
        return
    if v.kind == "i":
        d.put(d.draw(_UNARY_INT).format(x=v.name), v)
    elif v.exact and d.draw([True, False]):
        d.put(d.draw(_UNARY_EXACT).format(x=v.name), v)
    else:
        large = max(v.large, v.large**2 * 0.25)
        d.put(d.draw(_UNARY).format(x=v.name), v, exact=False, large=large)


def binary(d: Draft) -> None:
    x = d.any("fi")
    if x is None:
        return
    fit = [y for y in d.values if y.kind == x.kind and broadcasts(x.shape, y.shape)]
    y = d.draw(fit)
    exact = x.exact and y.exact
    shape = np.broadcast_shapes(x.shape, y.shape)
    op = d.draw("+ - * max min div".split())
    both = f"{x.name}, {y.name}"
    if op in "max min":
        text, large = f"np.{op}imum({both})", max(x.large, y.large)
        if not exact and x.kind == "f":  # its gradient would be decided by rounding
            text, large = f"np.hypot({both})", x.large + y.large
    elif op == "div":
        text, large, exact = f"{x.name}/(1+np.abs({y.name}))", x.large, False
        if x.kind == "i":
            text = f"{x.name}//(1+np.abs({y.name}))"
    else:
        text = f"{x.name}{op}{y.name}"
        large = x.large * y.large if op == "*" else x.large + y.large
    d.put(text, x, shape=shape, exact=exact, large=large)


def reduce(d: Draft) -> None:
    v = d.any("fib", 1)
    if v is None or not v.size:
        return
    axes: Any = d.draw([None, *range(len(v.shape)), (0, len(v.shape) - 1)])
    kept = d.draw([True, False])
    at = range(len(v.shape)) if axes is None else {axes} if isinstance(axes, int) else set(axes)
    axes = axes if axes is None or isinstance(axes, int) else tuple(sorted(at))
    shape = tuple(
        1 if i in at else n for i, n in enumerate(v.shape) if kept or i not in at
    )
    count = math.prod(v.shape[i] for i in at)
    how = f"axis={axes}, keepdims={kept}"
    if v.kind == "b":
        d.put(f"np.{d.draw(['any', 'all'])}({v.name}, {how})", v, shape=shape)
    elif v.kind == "i":
        name, dtype = d.draw([("sum", ", dtype='int32'"), ("max", ""), ("min", "")])
        d.put(f"np.{name}({v.name}, {how}{dtype})", v, shape=shape)
    else:
        name = d.draw(["sum", "mean", "var", "max", "min", "logsumexp", "norm"])
        if name in ("max", "min"):
            exact = v.exact
            if not exact:
                return
            d.put(f"np.{name}({v.name}, {how})", v, shape=shape)
        elif name == "sum":
            d.put(f"np.sum({v.name}, {how})", v, shape=shape, exact=False,
                      large=v.large * max(count, 1) ** 0.6)  # fmt: skip
        elif name == "logsumexp":
            d.put(f"nn.logsumexp({v.name}, {how})", v, shape=shape, exact=False,
                      large=v.large + math.log(count))  # fmt: skip
        elif name == "norm":
            d.put(f"np.sqrt(np.mean({v.name}*{v.name}, {how})+1)", v, shape=shape, exact=False)
        else:
            large = v.large**2 if name == "var" else v.large
            d.put(f"np.{name}({v.name}, {how})", v, shape=shape, exact=False, large=large)


def row(d: Draft) -> None:
    v = d.any("f", 1)
    if v is None:
        return
    axis = d.draw([*range(len(v.shape)), len(v.shape) - 1, None])
    name = d.draw(["softmax", "log_softmax", "standardize"])
    if name == "standardize":
        d.put(f"nn.standardize({v.name}, axis={axis}, epsilon=0.1)", v, exact=False)
    elif name == "log_softmax":
        d.put(f"nn.log_softmax({v.name}, axis={axis})", v, exact=False, large=v.large + 9)
    else:
        d.put(f"nn.softmax({v.name}, axis={axis})", v, exact=False, large=1.0)


def compare(d: Draft) -> None:
    x = d.any("f", exact=True)
    if x is None:
        return
    y = d.any("f")
    assert y is not None
    if not broadcasts(x.shape, y.shape):
        return
    op = d.draw(["<", ">=", "==", "!="])
    if d.draw([True, False, False]):
        d.put(f"{x.name}{op}0.25", x, kind="b")
        return
    other = d.draw(["0.0", y.name, f"-{y.name}"])
    masks = [b for b in d.values if b.kind == "b" and broadcasts(b.shape, y.shape)]
    condition, mask = f"{x.name}{op}0.5", x
    if masks:
        mask = d.draw(masks)
        condition = mask.name
    shape = np.broadcast_shapes(mask.shape, y.shape)
    d.put(f"np.where({condition}, {y.name}, {other})", y, shape=shape)


def product(d: Draft) -> None:
    x = d.any("f", 1)
    if x is None:
        return
    inner = x.shape[-1]
    fit = [y for y in d.values if y.kind == "f" and y.shape and y.shape[-1] == inner]
    y = d.draw(fit)
    large = x.large * y.large * inner**0.5
    if len(x.shape) == len(y.shape) == 3 and x.shape[0] == y.shape[0]:
        text, shape = f"np.einsum('bij,bkj->bik', {x.name}, {y.name})", (*x.shape[:2], y.shape[1])
    elif len(y.shape) == 1:
        text, shape = f"{x.name} @ {y.name}", x.shape[:-1]
    elif len(y.shape) == 2:
        text, shape = f"{x.name} @ {y.name}.T", (*x.shape[:-1], y.shape[0])
    else:
        return
    if math.prod(shape) * inner > 20 * LARGEST:
        return
    d.put(text, x, shape=shape, exact=False, large=large)


def convert(d: Draft) -> None:
    v = d.any("fib")
    if v is None:
        return
    if v.kind in "ib":
        d.put(f"{v.name}.astype('float32')", v, kind="f", large=9.0)
    elif v.exact:
        d.put(f"np.floor({v.name}).astype('int32')", v, kind="i")


def order(d: Draft) -> None:
    v = d.any("fi", 1)
    if v is None or not v.exact and v.kind == "f" or not v.size:
        return
    axis = d.axis(v)
    how = d.draw(["sort", "argsort", "argmax", "argmin", "top"])
    short = v.shape[:axis] + v.shape[axis + 1 :]
    if how == "sort":
        d.put(f"np.sort({v.name}, axis={axis})", v)
    elif how == "argsort":
        d.put(f"np.argsort({v.name}, axis={axis}).astype('int32')", v, kind="i")
    elif how == "top":
        count = min(3, v.shape[-1])
        text = f"lax.top_k({v.name}, {count})[{d.draw([0, 1])}]"
        kind = "i" if text.endswith("1]") else v.kind
        d.put(text, v, kind=kind, shape=(*v.shape[:-1], count))
    else:
        d.put(f"np.{how}({v.name}, axis={axis}).astype('int32')", v, kind="i", shape=short)


def cumulate(d: Draft) -> None:
    v = d.any("f", 1)
    if v is None:
        return
    axis = d.axis(v)
    how = d.draw(["cumsum", "cummax", "cumlogsumexp", "cumprod"])
    if how == "cumsum":
        large = v.large * v.shape[axis] ** 0.6
        text = f"lax.cumsum({v.name}, {axis}, reverse={d.draw([True, False])})"
        d.put(text, v, exact=False, large=large)
    elif how == "cummax" and v.exact:
        d.put(f"lax.cummax({v.name}, {axis})", v)
    elif how == "cumprod":
        d.put(f"lax.cumprod(1+0.1*np.tanh({v.name})/{v.shape[axis]}, {axis})", v, exact=False)
    elif how == "cumlogsumexp":
        d.put(f"lax.cumlogsumexp({v.name}, {axis})", v, exact=False, large=v.large + 6)


def loop(d: Draft) -> None:
    v = d.any("f", 1)
    if v is None or not v.shape[0]:
        return
    x = v.name
    how = d.draw(["fori", "scan", "map", "cond"])
    if how == "fori":
        text = f"lax.fori_loop(0, 3, lambda i, c: np.sin(c) * 0.7 + {x} * 0.1, {x})"
        d.put(text, v, exact=False)
    elif how == "scan" and v.shape[0] <= 65:
        text = f"lax.scan(lambda c, r: (np.tanh(c + r), c * r), 0 * {x}[0], {x})[1]"
        d.put(text, v, exact=False)
    elif how == "map" and v.shape[0] <= 65:
        text = f"lax.map(lambda r: np.sum(np.cos(r)) * 0.01 + r, {x})"
        d.put(text, v, exact=False, large=v.large + 10)
    elif how == "cond":
        picked = d.any("fi", exact=True)
        if picked is not None and picked.size:
            text = f"np.ravel({picked.name})[0] > 0"
            d.put(f"lax.cond({text}, np.sin, lambda c: c * 0.5, {x})", v, exact=False)


def spread(d: Draft) -> None:
    v = d.any("f", 1)
    if v is None or v.size > 3000:
        return
    times = d.draw([2, 5, 16, 33])
    if d.draw([True, False]):
        d.put(f"np.broadcast_to({v.name}, {(times, *v.shape)})", v, shape=(times, *v.shape))
    else:
        large = 4 * v.large**2
        d.put(f"({v.name}[..., :, None] - {v.name}[..., None, :])**2", v, exact=False,
                  shape=(*v.shape, v.shape[-1]), large=large)  # fmt: skip


_STEPS = [
    unary, unary, binary, binary, binary, binary, reduce, reduce, row, move, move, move, together,
    together, pick, update, compare, product, convert, order, cumulate, loop, spread,
]  # fmt: skip
