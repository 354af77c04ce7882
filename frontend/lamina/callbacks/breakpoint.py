"""debug.breakpoint: a prompt in the middle of a program, with the values of the caller's variables."""

from __future__ import annotations

import code
import sys
from typing import Any

from lamina.callbacks.debugging import callback
from lamina.core.source_info import current, is_internal
from lamina.core.trace import is_array_like


def breakpoint(*, ordered: bool = False, **_: Any) -> None:
    """Opens a Python prompt when the program gets here: the arrays among the caller's variables are
    there by name, as NumPy arrays. Ctrl-D goes on.

    ordered  prompts come in program order.

    >>> @lamina.jit
    ... def f(x, stop=False):
    ...     if stop:
    ...         lamina.debug.breakpoint()
    ...     return x + 1
    >>> print(f.lower(1.0).as_text().count("custom_call"))
    0
    """
    frame = sys._getframe(1)
    while is_internal(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    names = {k: v for k, v in frame.f_locals.items() if is_array_like(v)}
    where = current()
    line = where.frames[0].text if where.raw else ""

    def prompt(values: dict[str, Any]) -> None:
        banner = f"lamina: stopped at {where.summary()}\n-> {line}\nvariables: {', '.join(values)}"
        code.interact(banner, local=dict(values), exitmsg="")

    callback(prompt, names, ordered=ordered)
