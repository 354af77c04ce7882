"""Which device holds which part of an array: handed to a function, or drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import tree
from lamina.core.trace import Tracer, get_aval
from lamina.sharding import Sharding, SingleDeviceSharding


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback` with the sharding of each array, at once; within jit, where programs run on
    gathered arrays, with that of one device, while the function is traced.

    value     a pytree of arrays.
    callback  a function of a Sharding.

    >>> lamina.debug.inspect_array_sharding(jnp.ones(3), callback=lambda s: print(s.num_devices))
    1
    """
    from lamina.devices import devices

    for x in tree.leaves(value):
        if isinstance(x, Tracer) or not hasattr(x, "sharding"):
            callback(SingleDeviceSharding(devices()[0]))
        else:
            callback(x.sharding)


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Prints which device holds which part of an array of one or two dimensions.

    arr      an array.
    options  as visualize_sharding takes them.

    >>> lamina.debug.visualize_array_sharding(jnp.ones(8))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    shape = get_aval(arr).shape
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(shape, s, **options))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints a table of the parts that a sharding splits a shape into, with their devices.

    shape      of one or two dimensions; ValueError for others.
    sharding   a Sharding.
    use_color  without effect, for the table is plain text; so is color_map.
    scale      of the width of a part.
    min_width  the characters that a part takes at least,
    max_width  and a row at most.
    color_map  see use_color.

    >>> sharding = lamina.NamedSharding(lamina.make_mesh((1,), ("x",)), lamina.P("x"))
    >>> lamina.debug.visualize_sharding((4,), sharding)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    columns, rows, held = _parts(shape, sharding)
    width = max(round(min_width * scale), *(len(name) + 2 for name in held.values()))
    width = min(width, max(1, (max_width - 1) // len(columns) - 1))
    lines = [_rule("┌┬┐", width, len(columns))]
    for row in rows:
        if len(lines) > 1:
            lines.append(_rule("├┼┤", width, len(columns)))
        cells = [held.get((row, column), "")[:width].center(width) for column in columns]
        lines.append("│" + "│".join(cells) + "│")
    lines.append(_rule("└┴┘", width, len(columns)))
    sys.stdout.write("\n".join(lines) + "\n")


def _parts(
    shape: Sequence[int], sharding: Sharding
) -> tuple[list[int], list[int], dict[tuple[int, int], str]]:
    """Where parts begin, in columns and rows, and who holds each."""
    held: dict[tuple[int, int], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        starts = [part.start or 0 for part in index]
        held.setdefault((0, starts[0]) if len(shape) == 1 else tuple(starts), []).append(device)  # type: ignore[arg-type]
    names = {
        at: f"{some[0].platform.upper()} {','.join(str(d.id) for d in some)}"
        for at, some in held.items()
    }
    return sorted({at[1] for at in held}), sorted({at[0] for at in held}), names


def _rule(corners: str, width: int, count: int) -> str:
    left, middle, right = tuple(corners)
    return left + middle.join(["─" * width] * count) + right
