"""Tracers that outlive the trace that made them: what is said of them."""

from __future__ import annotations

import weakref

from lamina import errors
from lamina.core import source_info
from lamina.core.library import library
from lamina.core.trace import Tracer


def leaked_tracer_error(
    tracer: Tracer, made_at: source_info.SourceInfo | None, what: str, trace_of: str
) -> errors.UnexpectedTracerError:
    """The error for a tracer used after its trace ended."""
    lines = [
        f"Encountered an unexpected tracer. A function transformed by {library.name} had a side effect, "
        "allowing for a reference to an intermediate value with type "
        f"{tracer.aval.str_long()} wrapped in a {type(tracer).__name__} to escape the scope of the "
        "transformation.",
        f"{library.name} transformations require that functions explicitly return their outputs, and "
        "disallow saving intermediate values to global state.",
        f"The function being traced when the value leaked was {trace_of}.",
    ]
    if made_at is not None and made_at.raw:
        lines.append(
            f"The leaked intermediate value was created on line {made_at.summary()}{what}."
        )
        lines.append("When the value was created, the final 5 user frames were:")
        lines += [f"  {frame}  {frame.text}" for frame in made_at.frames[:5]]
    lines.append(
        "To catch the leak earlier, set the environment variable "
        f"{library.variable('check_tracer_leaks')}=1 or use the `{library}.checking_leaks` context manager."
    )
    return errors.UnexpectedTracerError("\n".join(lines))


def check_no_leaks(trace_ref: weakref.ref, what: str) -> None:
    """Raises if a trace that should be gone is still referred to (config.check_tracer_leaks)."""
    if trace_ref() is not None:
        import gc

        gc.collect()
        if trace_ref() is not None:
            raise errors.UnexpectedTracerError(
                f"Leaked trace: {what} ended, but something still holds one of its tracers."
            )
