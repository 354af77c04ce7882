"""The heart of the frontend: types, primitives, jaxprs, traces. Knows neither MLIR nor any one
primitive or transformation."""

from lamina.core import dtypes as dtypes
from lamina.core import source_info as source_info
from lamina.core import tree as tree
from lamina.core.array_class import Array as Array
from lamina.core.avals import AbstractValue as AbstractValue
from lamina.core.avals import ShapedArray as ShapedArray
from lamina.core.avals import same_type as same_type
from lamina.core.jaxpr import Atom as Atom
from lamina.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from lamina.core.jaxpr import Jaxpr as Jaxpr
from lamina.core.jaxpr import JaxprEqn as JaxprEqn
from lamina.core.jaxpr import Literal as Literal
from lamina.core.jaxpr import Var as Var
from lamina.core.jaxpr import eval_jaxpr as eval_jaxpr
from lamina.core.placed import ShardingTypeError as ShardingTypeError
from lamina.core.primitive import LINEAR as LINEAR
from lamina.core.primitive import NO_OPERANDS as NO_OPERANDS
from lamina.core.primitive import NOT_DIFFERENTIABLE as NOT_DIFFERENTIABLE
from lamina.core.primitive import NOT_LINEAR as NOT_LINEAR
from lamina.core.primitive import OWED as OWED
from lamina.core.primitive import Primitive as Primitive
from lamina.core.tangents import UndefinedPrimal as UndefinedPrimal
from lamina.core.tangents import Zero as Zero
from lamina.core.tangents import is_undefined_primal as is_undefined_primal
from lamina.core.trace import Trace as Trace
from lamina.core.trace import Tracer as Tracer
from lamina.core.trace import current_trace as current_trace
from lamina.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
from lamina.core.trace import get_aval as get_aval
from lamina.core.trace import get_opaque_trace_state as get_opaque_trace_state
from lamina.core.trace import is_array_like as is_array_like
from lamina.core.trace import set_current_trace as set_current_trace
from lamina.core.value_tables import pytype_aval_mappings as pytype_aval_mappings
