"""The transformations, as users import them."""

from lamina.autodiff import grad as grad
from lamina.autodiff import hessian as hessian
from lamina.autodiff import jacfwd as jacfwd
from lamina.autodiff import jacobian as jacobian
from lamina.autodiff import jacrev as jacrev
from lamina.autodiff import jvp as jvp
from lamina.autodiff import linear_transpose as linear_transpose
from lamina.autodiff import linearize as linearize
from lamina.autodiff import value_and_grad as value_and_grad
from lamina.autodiff import vjp as vjp
from lamina.jit import eval_shape as eval_shape
from lamina.jit import jit as jit
from lamina.jit import make_jaxpr as make_jaxpr
from lamina.stages import ShapeDtypeStruct as ShapeDtypeStruct
from lamina.vmap import vmap as vmap
