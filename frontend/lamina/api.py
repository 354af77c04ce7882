"""The transformations, as users import them."""

from lamina.autodiff import fwd_and_bwd as fwd_and_bwd
from lamina.autodiff import jvp as jvp
from lamina.autodiff import linear_transpose as linear_transpose
from lamina.autodiff import linearize as linearize
from lamina.autodiff import vjp as vjp
from lamina.gradients import grad as grad
from lamina.gradients import value_and_grad as value_and_grad
from lamina.jacobians import hessian as hessian
from lamina.jacobians import jacfwd as jacfwd
from lamina.jacobians import jacobian as jacobian
from lamina.jacobians import jacrev as jacrev
from lamina.jit.function import eval_shape as eval_shape
from lamina.jit.function import jit as jit
from lamina.jit.function import make_jaxpr as make_jaxpr
from lamina.shape_dtype import ShapeDtypeStruct as ShapeDtypeStruct
from lamina.vmap import vmap as vmap
