"""Arrays that are said to lie alike do, in programs that are partitioned."""

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.experimental.shard_alike import shard_alike
from lamina.partitioning import missing
from lamina.sharding import NamedSharding

pytestmark = [
    pytest.mark.usefixtures("eight_devices"),
    pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]"),
]
X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


def _placed(*spec: object) -> tuple[NamedSharding, lamina.Array]:
    place = NamedSharding(auto_mesh((2, 2), ("x", "y")), P(*spec))
    return place, lamina.device_put(X, place)


def test_what_is_made_lies_as_an_argument_does() -> None:
    place, x = _placed("x", "y")
    for f in (lamina.jit(shard_alike), shard_alike):
        same, other = f(x, jnp.ones((8, 2)))
        assert same.sharding == place
        assert other.sharding.is_equivalent_to(place, 2)
        np.testing.assert_array_equal(same, X)
        np.testing.assert_array_equal(other, np.ones((8, 2)))


def test_batches() -> None:
    place, x = _placed("x", "y")
    both = lamina.jit(lamina.vmap(shard_alike, in_axes=(0, 1)))(x, jnp.ones((2, 8)))
    assert both[1].shape == (8, 2)
    assert both[1].sharding == place
    row = lamina.device_put(X[0], place.update(spec=P("y")))
    of_rows = lamina.jit(lambda r, xs: lamina.vmap(lambda x: shard_alike(x, r)[0])(xs))(row, jnp.asarray(X))
    assert of_rows.sharding.spec == P(None, "y")
    np.testing.assert_array_equal(of_rows, X)


def test_derivatives() -> None:
    place, x = _placed("x", "y")

    def loss(x, y):
        x, y = shard_alike(x, y)
        return (x * y).sum()

    slopes = lamina.jit(lamina.grad(loss, (0, 1)))(x, jnp.ones((8, 2)))
    assert all(slope.sharding == place for slope in slopes)
    np.testing.assert_array_equal(slopes[1], X)
    np.testing.assert_array_equal(lamina.jvp(lambda x: shard_alike(x, X)[0], (X,), (2 * X,))[1], 2 * X)


def test_without_a_mesh_it_says_nothing() -> None:
    x, y = lamina.jit(shard_alike)({"a": X}, {"a": 2 * X})
    np.testing.assert_array_equal(y["a"], 2 * x["a"])


@pytest.mark.parametrize(
    ("y", "says"), [([X, X], "Trees should be equal"), (X[0], "leaves shapes of `x` and `y`")]
)
def test_what_is_not_alike(y: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        shard_alike(X, y)
