"""Steps of random array programs that move elements: see array_programs.py."""

from __future__ import annotations

from support.strategies.array_programs import Draft


def move(d: Draft) -> None:
    v = d.any("fib", 1)
    if v is None:
        return
    axis, n = d.axis(v), len(v.shape)
    size = v.shape[axis]
    how = d.draw("transpose reshape flip roll slice step pad edge expand tile repeat diff".split())
    x, kept = v.name, list(v.shape)
    if how == "transpose":
        order = sorted(range(n), key=lambda i: ((i + 1 + axis) % n, i))
        if n == 3 and d.draw([True, False]):
            order = [order[0], order[2], order[1]]
        text, kept = f"np.transpose({x}, {tuple(order)})", [v.shape[i] for i in order]
    elif how == "reshape":
        kept = d.draw([[v.size], [*v.shape, 1], [*v.shape[::-1]]])
        text = f"np.reshape({x}, {tuple(kept)})"
    elif how == "flip":
        text = f"np.flip({x}, {axis})"
    elif how == "roll":
        text = f"np.roll({x}, {d.draw([1, -1, 3, 17])}, {axis})"
    elif how == "slice":
        low, high = d.draw([(1, 0), (0, 1), (size // 3, 0), (1, 1)])
        kept[axis] = max(size - low - high, 0)
        if not kept[axis]:
            return
        text = f"lax.slice_in_dim({x}, {low}, {size - high}, axis={axis})"
    elif how == "step":
        step = d.draw([2, 3, -1, -2])
        kept[axis] = -(-size // abs(step))
        index = ", ".join([":"] * axis + [f"::{step}"])
        text = f"{x}[{index}]"
    elif how in ("pad", "edge"):
        low, high = d.draw([(1, 1), (0, 3), (16, 0), (5, 2)])
        if v.kind != "f":
            return
        mode = f"constant_values={d.draw([0, 1, -2])}" if how == "pad" else "mode='edge'"
        widths = [(low, high) if i == axis else (0, 0) for i in range(n)]
        kept[axis] += low + high
        text = f"np.pad({x}, {widths}, {mode})"
    elif how == "expand":
        text = f"np.expand_dims({x}, {axis})"
        kept.insert(axis, 1)
    elif how == "diff":
        if v.kind != "f" or size < 2:
            return
        kept[axis] -= 1
        d.put(f"np.diff({x}, axis={axis})", v, shape=tuple(kept), large=2 * v.large)
        return
    else:
        times = d.draw([2, 3])
        kept[axis] *= times
        counts = [times if i == axis else 1 for i in range(n)]
        text = f"np.tile({x}, {tuple(counts)})" if how == "tile" else f"np.repeat({x}, {times}, {axis})"
    d.put(text, v, shape=tuple(kept))


def together(d: Draft) -> None:
    x = d.any("fi", 1)
    if x is None:
        return
    axis = d.axis(x)
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    fit = [
        y
        for y in d.values
        if y.kind == x.kind
        and len(y.shape) == len(x.shape)
        and y.shape[:axis] + y.shape[axis + 1 :] == rest
    ]
    parts = [x, *(d.draw(fit) for _ in range(d.draw([1, 1, 2])))]
    exact, large = all(p.exact for p in parts), max(p.large for p in parts)
    names = ", ".join(p.name for p in parts)
    if all(p.shape == x.shape for p in parts) and d.draw([True, False]):
        shape = (*x.shape[:axis], len(parts), *x.shape[axis:])
        d.put(f"np.stack([{names}], {axis})", x, shape=shape, exact=exact, large=large)
        return
    total = sum(p.shape[axis] for p in parts)
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    d.put(f"np.concatenate([{names}], {axis})", x, shape=shape, exact=exact, large=large)


def pick(d: Draft) -> None:
    v, at = d.any("fi", 1), d.any("i")
    if v is None:
        return
    axis = d.axis(v)
    n = v.shape[axis]
    if at is None or not n:
        index, count = f"np.arange(5)*3%{n}", (5,)
    else:
        index, count = f"{at.name}%{n}", at.shape
    shape = (*v.shape[:axis], *count, *v.shape[axis + 1 :])
    how = d.draw(["take", "take", "along", "dynamic"])
    if how == "take":
        d.put(f"np.take({v.name}, {index}, axis={axis})", v, shape=shape)
    elif how == "along" and at is not None and len(at.shape) == len(v.shape):
        if all(a == b for i, (a, b) in enumerate(zip(at.shape, v.shape)) if i != axis):
            text = f"np.take_along_axis({v.name}, {index}, axis={axis})"
            d.put(text, v, shape=at.shape)
    elif how == "dynamic":
        size = max(n // 2, 1)
        start = "1" if at is None else f"np.sum({at.name}, dtype='int32')%{n}"
        text = f"lax.dynamic_slice_in_dim({v.name}, {start}, {size}, {axis})"
        d.put(text, v, shape=(*v.shape[:axis], size, *v.shape[axis + 1 :]))


def update(d: Draft) -> None:
    v = d.any("f", 1)
    if v is None or not v.shape[0]:
        return
    n = v.shape[0]
    at = d.any("i")
    fit = [y for y in d.values if y.kind == "f" and y.shape == v.shape[1:]]
    put = d.draw(fit) if fit else None
    what = put.name if put else "0.5"
    exact = v.exact and (put is None or put.exact)
    large = v.large + (put.large if put else 1)
    how = d.draw(["set", "add", "many", "box", "segments"])
    if how in ("set", "add"):
        text = f"{v.name}.at[{d.draw([0, n - 1, n // 2])}].{how}({what})"
    elif how == "box":
        text = f"{v.name}.at[{n // 3}:{n // 3 + max(n // 2, 1)}].multiply(0.5)"
    elif at is None:
        return
    elif how == "many":
        text = f"{v.name}.at[np.ravel({at.name})[:40]%{n}].add({what})"
        large = v.large + 40 * large
    else:
        if at.shape != v.shape[:1]:
            return
        text = f"np.zeros_like({v.name}).at[{at.name}%{n}].add({v.name})"
        large = v.large * n
    d.put(text, v, exact=exact and how in ("set", "box"), large=large)
