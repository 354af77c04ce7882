"""Higher-order primitives, each whole in one file, and the loops made of them."""

from lamina.control_flow.associative_scan import associative_scan as associative_scan
from lamina.control_flow.composite import composite as composite
from lamina.control_flow.composite import platform_dependent as platform_dependent
from lamina.control_flow.cond import cond as cond
from lamina.control_flow.cond import switch as switch
from lamina.control_flow.cumlogsumexp import cumlogsumexp as cumlogsumexp
from lamina.control_flow.cumlogsumexp import cumlogsumexp_p as cumlogsumexp_p
from lamina.control_flow.custom_jvp import custom_jvp as custom_jvp
from lamina.control_flow.custom_linear_solve import custom_linear_solve as custom_linear_solve
from lamina.control_flow.custom_root import custom_root as custom_root
from lamina.control_flow.loops import fori_loop as fori_loop
from lamina.control_flow.loops import map as map
from lamina.control_flow.reduction import reduce as reduce
from lamina.control_flow.reduction import reduce_p as reduce_p
from lamina.control_flow.reduction import reduce_window as reduce_window
from lamina.control_flow.reduction import reduce_window_p as reduce_window_p
from lamina.control_flow.scan import scan as scan
from lamina.control_flow.while_loop import while_loop as while_loop
