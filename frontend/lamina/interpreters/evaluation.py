"""Evaluation: runs each primitive at once, as a compiled program of one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.core.primitive import Primitive
from lamina.core.trace import Trace, Tracer
from lamina.interpreters.staging import raise_leaked


class EvalTrace(Trace):
    """The bottom trace. The compiler stands above, so its two services are injected:

    compile_primitive(primitive, params)  the function that runs one operation, for all types
    run_jaxpr(closed_jaxpr, name, args)   runs a whole program, compiled once
    """

    __slots__ = ("_compile_primitive", "_functions", "run_jaxpr")

    def __init__(
        self, compile_primitive: Callable[..., Any], run_jaxpr: Callable[..., Any]
    ) -> None:
        super().__init__(None)
        self._compile_primitive, self.run_jaxpr = compile_primitive, run_jaxpr
        self._functions: dict[Any, Any] = {}

    def name(self) -> str:
        return "evaluation"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if primitive.impl is not None:
            self._refuse_tracers(args)
            return primitive.impl(*args, **params)
        key = (primitive, *params.items())
        function = self._functions.get(key)
        if function is None:
            self._refuse_tracers(args)
            function = self._functions[key] = self._compile_primitive(primitive, params)
        return function(*args)

    @staticmethod
    def _refuse_tracers(args: tuple[Any, ...]) -> None:
        for x in args:
            if isinstance(x, Tracer):
                raise_leaked(x)
