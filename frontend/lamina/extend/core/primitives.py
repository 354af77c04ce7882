"""All of lamina's primitives, under their names with `_p`."""

from lamina import lax as _lax
from lamina.control_flow.checkpoint import checkpoint_p as checkpoint_p
from lamina.control_flow.checkpoint_name import name_p as name_p
from lamina.control_flow.cond import cond_p as cond_p
from lamina.control_flow.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from lamina.control_flow.custom_vjp_remat import remat_opt_p as remat_opt_p
from lamina.control_flow.custom_vjp_rules import custom_lin_p as custom_lin_p
from lamina.control_flow.custom_vjp_rules import custom_vjp_call_p as custom_vjp_call_p
from lamina.control_flow.custom_vmap import custom_vmap_call_p as custom_vmap_call_p
from lamina.control_flow.jit_call import jit_p as jit_p
from lamina.control_flow.linear_call import linear_call_p as linear_call_p
from lamina.control_flow.scan_rules import scan_p as scan_p
from lamina.control_flow.while_rules import while_p as while_p
from lamina.core.primitive import Primitive as _Primitive
from lamina.core.rule_tables import UserPrimitive as _UserPrimitive

remat_p = checkpoint_p
# Calls in JAX's jaxprs, which interpreters of jaxprs ask for; here every call is a jit_p.
call_p, closed_call_p, core_call_p = map(_UserPrimitive, ("call", "closed_call", "core_call"))

globals().update({n: p for n, p in vars(_lax).items() if isinstance(p, _Primitive)})
