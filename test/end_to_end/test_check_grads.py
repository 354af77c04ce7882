"""check_grads passes right derivatives of all orders and refuses wrong ones."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.test_util import check_grads

X = np.array([0.3, 0.5], np.float32)


def test_right_derivatives() -> None:
    check_grads(lambda a, b: jnp.sin(a) * jnp.exp(b["q"]), (X, {"q": X}), 2)
    with lamina.enable_x64(True):
        z = np.array([0.3 + 0.2j, 0.1])
        check_grads(lambda a: jnp.exp(a * 1j) * a, (z,), 2)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives(mode) -> None:
    @lamina.custom_jvp
    def square(x):
        return x**2

    square.defjvp(lambda primals, tangents: (square(*primals), 3 * primals[0] * tangents[0]))
    with pytest.raises(AssertionError, match=f"{mode}: "):
        check_grads(square, (X,), 1, modes=mode)
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev', got sideways"):
        check_grads(square, (X,), 1, modes=["sideways"])
