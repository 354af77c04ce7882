"""Jaxprs and primitives, for libraries that read the former and define the latter."""

from lamina.core.avals import ShapedArray as ShapedArray
from lamina.core.effects import Effect as Effect
from lamina.core.jaxpr import Atom as Atom
from lamina.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from lamina.core.jaxpr import DebugInfo as DebugInfo
from lamina.core.jaxpr import DropVar as DropVar
from lamina.core.jaxpr import Jaxpr as Jaxpr
from lamina.core.jaxpr import JaxprEqn as JaxprEqn
from lamina.core.jaxpr import Literal as Literal
from lamina.core.jaxpr import Var as Var
from lamina.core.jaxpr import eval_jaxpr as eval_jaxpr
from lamina.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from lamina.core.jaxpr_checker import check_jaxpr as check_jaxpr
from lamina.core.rule_tables import UserPrimitive as Primitive
from lamina.core.trace import Trace as Trace
from lamina.core.trace import Tracer as Tracer
from lamina.core.trace import get_opaque_trace_state as get_opaque_trace_state
from lamina.core.trace import is_array_like as valid_jaxtype
from lamina.errors import JaxprTypeError as JaxprTypeError
from lamina.extend.core import primitives as primitives
from lamina.extend.core.jaxprs import jaxprs_in_params as jaxprs_in_params
from lamina.extend.core.jaxprs import mapped_aval as mapped_aval
from lamina.extend.core.jaxprs import new_jaxpr_eqn as new_jaxpr_eqn
from lamina.extend.core.jaxprs import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from lamina.extend.core.jaxprs import subjaxprs as subjaxprs
from lamina.extend.core.jaxprs import unmapped_aval as unmapped_aval
from lamina.extend.core.traces import TraceTag as TraceTag
from lamina.extend.core.traces import concrete_or_error as concrete_or_error
from lamina.extend.core.traces import set_current_trace as set_current_trace
from lamina.extend.core.traces import take_current_trace as take_current_trace

__all__ = [
    "Atom", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
    "Primitive", "ShapedArray", "Trace", "TraceTag", "Tracer", "Var", "check_jaxpr", "concrete_or_error",
    "eval_jaxpr", "get_opaque_trace_state", "jaxpr_as_fun",
    "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "primal_dtype_to_tangent_dtype", "primitives",
    "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip
