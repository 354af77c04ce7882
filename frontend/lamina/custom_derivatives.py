"""Functions with derivatives of their own."""

from lamina.control_flow.custom_gradient import closure_convert as closure_convert
from lamina.control_flow.custom_gradient import custom_gradient as custom_gradient
from lamina.control_flow.custom_jvp import custom_jvp as custom_jvp
from lamina.control_flow.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from lamina.control_flow.custom_rule import SymbolicZero as SymbolicZero
from lamina.control_flow.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from lamina.control_flow.custom_vjp import custom_vjp as custom_vjp
from lamina.control_flow.custom_vjp import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from lamina.control_flow.custom_vjp import zero_from_primal as zero_from_primal
from lamina.control_flow.custom_vjp_remat import remat_opt_p as remat_opt_p
from lamina.control_flow.custom_vjp_rules import custom_vjp_call_p as custom_vjp_call_p
from lamina.control_flow.linear_call import linear_call as linear_call

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
