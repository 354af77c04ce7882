"""Where the gradients of a vjp function go: see `with_refs` of what `lamina.vjp` gives."""

from lamina.vjp_functions import DidntWant as DidntWant
from lamina.vjp_functions import DontWant as DontWant
from lamina.vjp_functions import GradRef as GradRef
from lamina.vjp_functions import GradValue as GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
