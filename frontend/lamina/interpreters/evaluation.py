"""Evaluation: runs each primitive at once, as a compiled program of one operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lamina.core.interning import interned
from lamina.core.primitive import Primitive
from lamina.core.trace import Trace, Tracer
from lamina.interpreters.staging import raise_leaked

_MAX_FUNCTIONS = 4096  # one for each primitive and parameters


class EvalTrace(Trace):
    """The bottom trace. The compiler stands above, so its two services are injected:

    compile_primitive(primitive, params)  the function that runs one operation, for all types
    run_jaxpr(closed_jaxpr, name, args)   runs a whole program, compiled once
    """

    __slots__ = ("_function", "run_jaxpr")

    def __init__(
        self, compile_primitive: Callable[..., Any], run_jaxpr: Callable[..., Any]
    ) -> None:
        super().__init__(None)
        self.run_jaxpr = run_jaxpr
        self._function = functools.lru_cache(_MAX_FUNCTIONS)(
            lambda primitive, params: compile_primitive(primitive, dict(params))
        )

    def name(self) -> str:
        return "evaluation"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.impl is not None:
            self._refuse_tracers(args)
            return primitive.impl(*args, **params)
        if primitive.multiple_results:
            params = interned(params)
        return self._function(primitive, tuple(params.items()))(*args)

    @staticmethod
    def _refuse_tracers(args: tuple[Any, ...]) -> None:
        for x in args:
            if isinstance(x, Tracer):
                raise_leaked(x)
