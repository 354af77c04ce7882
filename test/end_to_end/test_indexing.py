"""Reading by index: random index expressions against NumPy, JAX's rules at the edges, error texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle.judge import JAX, LAMINA, check, check_all

import lamina
import lamina.numpy as jnp

SHAPES = [(5,), (3, 4), (2, 3, 4), (4, 1, 3)]


@st.composite
def index_expressions(draw, arrays=True):
    """A shape, and an index expression that NumPy accepts for it."""
    shape = draw(st.sampled_from(SHAPES))
    batch = draw(st.sampled_from([(), (3,), (2, 1), (2, 3)]))
    items, axis = [], 0
    count = draw(st.integers(0, len(shape)))
    while axis < count:
        n = shape[axis]
        kind = draw(
            st.sampled_from(
                ["int", "slice", "new", "array", "mask"] if arrays else ["int", "slice", "new"]
            )
        )
        if kind == "new":
            items.append(None)
            if len(items) > 6:
                break
            continue
        if kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.one_of(st.none(), st.integers(-n - 1, n + 1))
            step = draw(st.sampled_from([None, 1, 2, -1, -2, 3]))
            items.append(slice(draw(bound), draw(bound), step))
        elif kind == "mask" and not any(isinstance(i, np.ndarray) and i.ndim > 1 for i in items):
            mask = np.zeros(n, bool)
            mask[: 1 if batch in ((), (2, 1)) else min(3, n)] = True
            if mask.sum() != (1 if batch in ((), (2, 1)) else 3):
                items.append(slice(None))
            else:
                items.append(mask)
        else:
            size = draw(st.sampled_from([(), batch, batch[-1:]]))
            flat = draw(
                st.lists(
                    st.integers(-n, n - 1), min_size=int(np.prod(size)), max_size=int(np.prod(size))
                )
            )
            items.append(np.array(flat, np.int32).reshape(size))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return shape, tuple(items)


def _values(shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


def _numpys(shape, index):
    try:
        return _values(shape)[index]
    except IndexError:
        return None


@settings(max_examples=120)
@given(index_expressions(), st.booleans())
def test_random_indices_against_numpy(case, wide):
    shape, index = case
    want = _numpys(shape, index)
    if want is None:
        return
    with lamina.enable_x64(wide):
        got = jnp.asarray(_values(shape))[index]
    np.testing.assert_array_equal(np.asarray(got), want, strict=True)


@settings(max_examples=60)
@given(index_expressions())
def test_random_indices_while_tracing(case):
    shape, index = case
    want = _numpys(shape, index)
    if want is None:
        return
    got = lamina.jit(lambda x: x[index])(_values(shape))
    np.testing.assert_array_equal(np.asarray(got), want, strict=True)


@settings(max_examples=40)
@given(index_expressions())
def test_gradients_of_random_indices(case):
    shape, index = case
    want = _numpys(shape, index)
    if want is None:
        return
    weight = np.cos(np.arange(want.size, dtype=np.float32)).reshape(want.shape)
    got = lamina.grad(lambda x: jnp.sum(x[index] * weight))(_values(shape))
    expected = np.zeros(shape, np.float32)
    np.add.at(expected, index, weight)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6, atol=1e-6)


UPDATES = {
    "set": lambda x, i, y: x.__setitem__(i, y),
    "add": np.add.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "subtract": np.subtract.at,
}


@settings(max_examples=80)
@given(index_expressions(), st.sampled_from(sorted(UPDATES)), st.booleans(), st.booleans())
def test_random_updates_against_numpy(case, name, scalar, wide):
    shape, index = case
    want = _numpys(shape, index)
    if want is None:
        return
    y = (
        np.float32(3)
        if scalar
        else np.sin(np.arange(want.size, dtype=np.float32)).reshape(want.shape)
    )
    positions = np.arange(np.prod(shape)).reshape(shape)[index].ravel()
    if name == "set" and not scalar and len(set(positions.tolist())) < len(positions):
        return  # which of several values wins is not defined
    expected = _values(shape)
    UPDATES[name](expected, index, y)
    with lamina.enable_x64(wide):
        got = getattr(jnp.asarray(_values(shape)).at[index], name)(y)
        traced = lamina.jit(lambda x, y: getattr(x.at[index], name)(y))(_values(shape), y)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(traced), expected, rtol=1e-6)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.float32)


@pytest.mark.parametrize("index", [7, -7, 5, -5, -6, 0, -1])
def test_integers_out_of_bounds_are_clamped(index):
    check(lambda m: m.np.asarray(V)[index])
    check(lambda m: m.jit(lambda x: x[index])(V))
    check(lambda m: m.jit(lambda x, i: x[i])(V, index))
    check(lambda m: m.np.asarray(V)[m.np.asarray([index, 1])])


@pytest.mark.parametrize("mode", ["clip", "fill", "drop", "promise_in_bounds"])
def test_modes_of_reading(mode):
    inside = [1, -1] if mode == "promise_in_bounds" else [7, -7, 2, -1]
    check(lambda m: m.np.asarray(V).at[m.np.asarray(inside)].get(mode=mode))
    check(lambda m: m.np.asarray(X).at[m.np.asarray(inside), 1:].get(mode=mode))
    for i in inside:
        check(lambda m, i=i: m.np.asarray(V).at[i].get(mode=mode))
        check(lambda m, i=i: m.jit(lambda x, k: x.at[k].get(mode=mode))(V, i))


@pytest.mark.parametrize("mode", [None, "clip", "drop", "fill"])
@pytest.mark.parametrize(
    "name", ["set", "add", "multiply", "divide", "power", "min", "max", "apply"]
)
def test_modes_of_updates(mode, name):
    y = (lambda m: m.np.cos) if name == "apply" else (lambda m: 2.0)
    for i in (7, -7, 2):
        check(lambda m, i=i: getattr(m.np.asarray(V).at[i], name)(y(m), mode=mode))
    index = np.array([7, 1, -2])
    check(lambda m: getattr(m.np.asarray(V).at[m.np.asarray(index)], name)(y(m), mode=mode))
    check(lambda m: m.jit(lambda x, i: getattr(x.at[i, 1:3], name)(y(m), mode=mode))(X, index))


def test_wrapping_mode():
    i = np.array([7, -7, 2])
    x = jnp.asarray(X)
    np.testing.assert_array_equal(x.at[i].get(mode="wrap"), X[i % 3])
    np.testing.assert_array_equal(x.at[7, -9].get(mode="wrap"), X[7 % 3, -9 % 4])
    expected = X.copy()
    np.add.at(expected, i % 3, 1.0)
    np.testing.assert_array_equal(x.at[i].add(1.0, mode="wrap"), expected)
    expected[-7 % 3] = 0
    np.testing.assert_array_equal(jnp.asarray(expected).at[-7].set(0.0, mode="wrap"), expected)


def test_fill_values():
    for dtype in ("float32", "int32", "int8", "uint8", "bool"):
        x = np.ones(3, dtype)
        check(lambda m, x=x: m.np.asarray(x).at[5].get(mode="fill"))
        check(lambda m, x=x: m.np.take(x, m.np.asarray([0, 5])))
    check(lambda m: m.np.asarray(V).at[9].get(mode="fill", fill_value=-3))


def test_repeated_indices_accumulate():
    i = np.array([1, 1, 2, 1])
    check(lambda m: m.np.asarray(V).at[m.np.asarray(i)].add(1.0))
    check(lambda m: m.np.asarray(V).at[m.np.asarray(i)].multiply(2.0))
    check(lambda m: m.np.asarray(V).at[m.np.asarray(i)].max(m.np.asarray([9.0, 7.0, 8.0, 6.0])))


def test_gradients_of_updates():
    i = np.array([1, 3])
    y = np.array([5.0, 6.0], np.float32)
    for name in ("set", "add", "max"):

        def f(m, name=name):
            return m.grad(
                lambda x, y: (getattr(x.at[m.np.asarray(i)], name)(y) ** 2).sum(), (0, 1)
            )(V, y)

        check(f)
        check(
            lambda m, n=name: m.grad(lambda x, y: (getattr(x.at[1:3], n)(y) ** 2).sum(), (0, 1))(
                V, y
            )
        )


def test_gradients_of_products_at_scalars():
    """One element or slice is named once: no promise of unique_indices is needed."""
    x = np.asarray(X)

    def f(m, x, i):
        return (x.at[i].multiply(x[0]).at[:2, i].multiply(x[1, 1]) ** 2).sum()

    check(lambda m: m.grad(lambda x: f(m, x, 1))(x), rtol=1e-5)
    check(lambda m: m.jit(m.grad(lambda x, i: f(m, x, i)))(x, -2), rtol=1e-5)
    check(lambda m: m.vmap(m.grad(lambda x, i: f(m, x, i)), (None, 0))(x, np.array([0, 1, 0])), rtol=1e-5)


def test_updates_of_nothing():
    i = np.array([0, 3, -1])
    for mode in (None, "clip", "drop", "promise_in_bounds"):
        for name in ("set", "add", "multiply", "min", "max", "divide"):
            check(lambda m, n=name, o=mode: m.jit(
                lambda x, i: getattr(x.at[..., i], n)(1, mode=o))(np.zeros((2, 0)), i))  # fmt: skip
    assert jnp.zeros((0, 3)).at[i].add(1, mode="wrap").shape == (0, 3)
    check(lambda m: m.vmap(lambda x: x.at[i, i].set(np.ones(())).at[:, 0].add(2))(m.np.zeros((2, 0, 3))))
    check(lambda m: m.np.zeros((0, 3)).at[i].apply(m.np.cos))
    with pytest.raises(ValueError, match="broadcast"):
        jnp.zeros((0, 3)).at[i].add(np.ones(5))


def test_vmapped_indices():
    i = np.array([0, 2, 1])
    check(lambda m: m.vmap(lambda x, k: x[k])(X, i))
    check(lambda m: m.vmap(lambda x, k: x.at[k].set(0.0))(X, i))
    check(lambda m: m.vmap(lambda k: m.np.asarray(V)[k])(i))
    check(lambda m: m.vmap(lambda k: m.np.asarray(V).at[k].add(1.0))(i))


def test_static_indices_are_slices():
    def names(f, *args):
        return [e.primitive.name for e in lamina.make_jaxpr(f)(*args).eqns]

    assert names(lambda x: x[1], X) == ["slice", "squeeze"]
    assert names(lambda x: x[:, 1:3], X) == ["slice"]
    assert names(lambda x: x[::-1], X) == ["rev"]
    assert names(lambda x: x[:, None], X) == ["broadcast_in_dim"]
    assert names(lambda x: x[...], X) == []
    assert "gather" not in names(lambda x, i: x[i, 1:], X, 1)
    assert names(lambda x: x.at[1:].set(0.0), X)[-1] == "dynamic_update_slice"
    assert names(lambda x, i: x[i], X, np.array([0, 1]))[-1] == "gather"


STATIC = {
    "turned": [2, 1, 0],
    "from the end": [-1, -2],
    "every second": [0, 2, 4],
    "with a gap": [0, 1, 3],
    "steps of two sizes": [4, 2, 3, 4, 0],
    "repeated": [3, 3, 1, 1],
    "unordered": [3, 0, 4, 1, 2],
    "one": [4],
    "none": [],
    "bytes": np.array([4, 2], np.uint8),
    "a mask": np.array([True, False, True, True, False]),
}
PLACES = {
    "first": lambda i: i,
    "second": lambda i: (slice(None), i),
    "last": lambda i: (..., i),
    "last of all": lambda i: (slice(None), slice(None, None, -1), i),
    "with new axes": lambda i: (None, ..., None, i, None),
    "before an ellipsis": lambda i: (slice(1, 4), i, ...),
    "with an integer": lambda i: (i, slice(None), 2),
}


@pytest.mark.parametrize("case", STATIC)
def test_index_arrays_known_while_tracing(case):
    index = np.asarray(STATIC[case])
    index = index if index.size else index.astype(np.int32)
    places = {name: place(index) for name, place in PLACES.items()}
    x = np.random.default_rng(0).standard_normal((5, 5, 5)).astype(np.float32)

    @lamina.jit
    def run(x):
        return {
            name: (x[i], lamina.grad(lambda x: (x[i] ** 3).sum())(x), x.at[i].add(2.0))  # noqa: B023
            for name, i in places.items()
        }

    for name, got in run(x).items():
        i = places[name]
        derivative, added = np.zeros_like(x), x.copy()
        np.add.at(derivative, i, 3 * x[i] ** 2)
        np.add.at(added, i, 2)
        for result, expected in zip(got, (x[i], derivative, added), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("case", [c for c in STATIC if c not in ("a mask", "none")])
def test_take_of_indices_known_while_tracing(case):
    index = np.asarray(STATIC[case])
    x = np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32)
    forms = [(axis, mode) for axis in (None, 0, 1) for mode in (None, "clip", "wrap")]
    got = lamina.jit(lambda x: [jnp.take(x, index, axis, mode=mode) for axis, mode in forms])(x)
    for result, (axis, mode) in zip(got, forms, strict=True):
        np.testing.assert_array_equal(result, np.take(x, index, axis, mode=mode or "wrap"))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint16])
def test_rows_of_taken_rows(axis, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 7)).astype(np.float32)
    signed = np.dtype(dtype).kind == "i"
    i = rng.integers(-15 if signed else 0, 15, 5).astype(dtype)  # some out of bounds: clamped
    j = rng.integers(-9 if signed else 0, 9, (2, 6)).astype(dtype)

    def taken(m, x, i, j):
        x = x if axis == 0 else x.T
        slope = m.grad(lambda x: (x[i][j] ** 3).sum())(x)
        return dict(enumerate((x[i][j], x[:, i][:, j], x[:, 0][i][j[0, :3]], slope)))

    check_all(taken, x, i, j, jit=True, rtol=1e-6)
    text = lamina.jit(lambda x, i, j: x[i][j]).lower(x, i, j).compile().as_text("optimized")
    assert "tensor<5x7xf32>" not in text


def test_few_runs_of_indices_are_slices():
    x = np.zeros((8, 4), np.float32)
    for f in (lambda x: x[:, [2, 1, 0]], lambda x: x[:, [0, 1, 3]], lambda x: jnp.delete(x, 3, axis=0)):
        assert "gather" not in str(lamina.make_jaxpr(f)(x))
    # A few of many: the derivative is a few rows added to zeros, not the sum of padded ones.
    assert "gather" in str(lamina.make_jaxpr(lambda x: x[np.array([1, 5, 40])])(np.zeros((64, 4), np.float32)))


def test_eager_integers_share_one_program():
    from lamina.numpy.indexing import take_by_plan
    from lamina.numpy.updating import _scatter

    x = jnp.asarray(X)
    x[0, 1], x[0:2], x.at[0].set(1.0)
    before = take_by_plan.jitted[0].cache_size(), _scatter.jitted[0].cache_size()
    for i in range(3):
        assert np.array_equal(x.at[i].set(1.0)[i], np.ones(4))
        for j in range(4):
            assert float(x[i, j]) == X[i, j]
    assert np.array_equal(x[1:3], X[1:3])
    # x[i] of rows is one new program; integers and windows of one size share theirs.
    after = take_by_plan.jitted[0].cache_size(), _scatter.jitted[0].cache_size()
    assert after[0] <= before[0] + 1 and after[1] == before[1]


def test_updates_keep_the_dtype():
    with pytest.warns(
        FutureWarning, match="cannot safely cast value from dtype=float32 to dtype=int32"
    ):
        out = jnp.arange(3).at[0].set(1.5)
    assert out.dtype == jnp.int32 and out.tolist() == [1, 1, 2]
    check(lambda m: m.np.zeros(3, m.np.bfloat16).at[1].set(1.0))
    check(lambda m: m.np.arange(3).at[1].add(m.np.asarray(2, m.np.int8)))


@pytest.mark.filterwarnings("ignore:scatter inputs:FutureWarning")
@pytest.mark.parametrize("index", [1, slice(1, 3), np.array([1, 1, 0])], ids=["one", "slice", "array"])
def test_updates_combine_in_the_common_dtype(index):
    """-3 + 2.5 is rounded after the sum, bools count, and unsigned values are no less than none."""

    def program(m, x, flags):
        small = m.np.asarray(3, "uint8")
        out = {name: getattr(x.at[index], name)(2.5) for name in ("add", "subtract", "multiply", "min", "max")}
        out |= {f"bool {name}": getattr(flags.at[index], name)(2)
                for name in ("add", "subtract", "multiply", "min", "max", "divide", "power")}  # fmt: skip
        out |= {f"less {kind}": x.astype(kind).at[index].subtract(small)
                for kind in ("int32", "float32", "uint8", "uint16")}  # fmt: skip
        return out

    check_all(program, np.arange(-3, 2, dtype=np.int32), np.array([True, False, True]), jit=True)
    for name in ("add", "subtract", "multiply"):
        with pytest.raises(TypeError, match="does not accept dtype bool"):
            getattr(jnp.ones(3, bool).at[index], name)(True)


# ---- take, take_along_axis and their kin --------------------------------------------------------
def test_take():
    i = np.array([[0, 2], [-1, 9]])
    for axis in (None, 0, 1, -1):
        check(lambda m, a=axis: m.np.take(X, i, axis=a))
        check(lambda m, a=axis: m.np.take(X, i, axis=a, mode="clip"))
        check(lambda m, a=axis: m.np.take(X, i, axis=a, mode="wrap"))
    check(lambda m: m.np.take(np.arange(3), m.np.asarray([5])))
    check(lambda m: m.np.take(V, 2))
    with pytest.raises(ValueError, match="take: indices must have an integer type"):
        jnp.take(V, 1.5)


def test_take_along_axis():
    i = np.array([[0, 3, -1], [1, 1, 7], [2, 0, 0]])
    check(lambda m: m.np.take_along_axis(X, i, 1))
    check(lambda m: m.np.take_along_axis(X, i[:, :1], axis=-1))
    check(lambda m: m.np.take_along_axis(X, np.array([[0, 1, 2, 1]]), 0))
    check(lambda m: m.np.take_along_axis(X, np.array([3, 30, -1]), None))
    check(lambda m: m.np.take_along_axis(X, i, 1, mode="clip"))
    check(lambda m: m.grad(lambda x: (m.np.take_along_axis(x, i % 4, 1) ** 2).sum())(X))
    with pytest.raises(ValueError, match="same number of dimensions"):
        jnp.take_along_axis(X, np.array([0]), 0)


def test_nonzero_and_kin():
    mask = np.array([[True, False, True], [False, False, True]])
    check(lambda m: m.np.nonzero(mask))
    check(lambda m: m.np.nonzero(mask, size=5))
    check(lambda m: m.np.nonzero(mask, size=2, fill_value=(7, 8)))
    check(lambda m: m.jit(lambda x: m.np.nonzero(x, size=4, fill_value=-1))(mask))
    check(lambda m: m.np.flatnonzero(mask))
    check(lambda m: m.np.argwhere(mask))
    check(lambda m: m.np.argwhere(mask, size=4))
    check(lambda m: m.np.unravel_index(np.array([0, 5, -1, 99]), (2, 3)))
    check(lambda m: m.np.ravel_multi_index((np.array([0, 1]), np.array([2, 1])), (2, 3)))
    check(lambda m: m.np.extract(mask, np.arange(6).reshape(2, 3)))
    with pytest.raises(lamina.errors.ConcretizationTypeError, match="size argument"):
        lamina.jit(jnp.nonzero)(mask)


def test_boolean_masks():
    check(lambda m: m.np.asarray(X)[X > 5])
    check(lambda m: m.np.asarray(X)[X[:, 0] > 3])
    check(lambda m: m.np.asarray(X)[:, X[0] > 1])
    check(lambda m: m.np.asarray(X)[True])
    check(lambda m: m.np.asarray(X)[False])
    np.testing.assert_array_equal(jnp.asarray(X)[None, True, 1], X[None, True, 1])
    check(lambda m: m.np.asarray(X).at[X > 5].set(0.0))
    check(lambda m: m.np.asarray(X).at[X > 5].add(np.arange(6, dtype=np.float32)))


def test_lists_in_a_tuple_are_arrays():
    check(lambda m: [m.np.asarray(X)[[0, 1], :], m.np.asarray(X)[:, [0, -1]], m.np.asarray(X)[[], 1],
                     m.np.asarray(X)[0, (0, 1)], m.np.asarray(X)[..., [True, False, True, False]],
                     m.np.asarray(X).at[[0, 2], :].set(1), m.np.asarray(X).at[:, [0, 0]].apply(m.np.cos),
                     m.np.asarray(X).at[:, [7, -1]].get(mode="clip")])  # fmt: skip
    check(lambda m: m.jit(lambda x, i: x[[i, i + 1], 1])(X, 1))


def test_a_reduction_of_what_is_found_at_found_places():
    """Its only operand was extracted from and dropped, and the loop had no length."""
    x = np.arange(64, dtype=np.uint32) % 7
    check(lambda m: m.jit(lambda a: m.np.sum(m.np.extract(a > 2, a, size=4), dtype="int8"))(x))


# ---- errors --------------------------------------------------------------------------------------
def test_index_errors():
    x = jnp.asarray(V)
    traced_mask = lamina.errors.NonConcreteBooleanIndexError
    cases = [
        (lambda: x[[0, 1]], TypeError, "Using a non-tuple sequence for multidimensional indexing"),
        (lambda: x[1.5], TypeError, "must have integer or boolean type, got indexer with type float64"),
        (lambda: x[jnp.ones(1)], TypeError, "got indexer with type float32"),
        (lambda: x["a"], TypeError, "does not support string indexing"),
        (lambda: x[0, 0], IndexError, "Too many indices: array is 1-dimensional, but 2 were indexed"),
        (lambda: x[..., ...], IndexError, "single ellipsis"),
        (lambda: x[np.ones(4, bool)], IndexError, r"boolean index did not match shape of indexed array "
         r"in index 0: got \(4,\), expected \[5\]"),
        (lambda: jnp.zeros((0, 3))[0], IndexError, "index is out of bounds for axis 0 with size 0"),
        (lambda: jnp.zeros((0, 3))[jnp.array([0])], TypeError, "axis 0 of size 0"),
        (lambda: jnp.zeros((0, 3)).at[jnp.array([0, 5])].get(mode="clip"), TypeError, "axis 0 of size 0"),
        (lambda: jnp.take(jnp.zeros((0, 3)), 0, axis=0), IndexError, "take.* from an empty axis"),
        (lambda: x.at[0].get(mode="foo"), ValueError, "Unknown gather mode"),
        (lambda: x.at[np.array([1, 2])].set(np.ones(3)), ValueError,
         r"input type=float32\[3\] and requested type=float32\[2\]"),
        (lambda: lamina.jit(lambda x, i: x[i : i + 2])(V, 1), IndexError, "dynamic_slice"),
        (lambda: x[1.0:2], TypeError, "cannot be interpreted as an integer"),
        (lambda: lamina.jit(lambda x, b: x[b])(V, V > 1), traced_mask, "must be concrete"),
        (lambda: lamina.jit(lambda x, b: x.at[b].set(0))(V, V > 1), traced_mask, "must be concrete"),
        (lambda: x.__setitem__(0, 1), TypeError, "x.at"),
        (lambda: x.at[0].set("a"), TypeError, "requires ndarray or scalar arguments"),
    ]  # fmt: skip
    for action, kind, text in cases:
        with pytest.raises(kind, match=text):
            action()


@pytest.mark.parametrize("mode", [None, "clip", "wrap"])
def test_take_along_an_empty_axis(mode):
    x = np.zeros((0, 3), np.float32)
    check(lambda m: m.np.take_along_axis(x, np.array([[0, 5, -1]]), 0, mode=mode))


def test_representation_of_updates():
    assert repr(jnp.arange(2).at[0]) == "IndexUpdateRef(Array([0, 1], dtype=int32), 0)"


def test_long_axes():
    """Positions beyond int32: static parts of an axis that long need none, others 64 bits."""
    n = 2**31 + 5
    long = lamina.ShapeDtypeStruct((n,), np.int8)

    def shapes(f):
        return [a.shape for a in lamina.tree_util.tree_leaves(lamina.eval_shape(f, long))]

    assert shapes(lambda x: (x[-1], x[n - 3 :], x[:4])) == [(), (3,), (4,)]
    for f in (lambda x: x.at[-1].set(1), lambda x: x[np.array([[3, -1]])], lambda x: x[jnp.int32(3)]):
        with pytest.raises(OverflowError, match="need 64 bits: set enable_x64"):
            lamina.eval_shape(f, long)
        with lamina.enable_x64(True):
            lamina.eval_shape(f, long)


def test_narrow_unsigned_and_empty_indices():
    """Traced scalars of any integer type beside other axes; unsigned ones that no axis has; index
    arrays without elements, of axes without any."""
    x, none = np.arange(24, dtype=np.float32).reshape(4, 2, 3), np.ones((3, 0), np.float32)
    far, empty = np.array([2**32 - 1, 1], np.uint32), np.array([], np.int32)

    def program(m, x, none, i, u, far_traced):
        return {
            "int8": x[i], "uint8": x[u], "in a row": x[:, i, 1:], "both": x[i, u],
            "update": x.at[i, u].set(7.0), "0-d": x.at[np.array(9), 1].set(2.0),
            "0-d read": x.at[np.array(9), 1].get(mode="fill"),
            "far": x.at[far].get(mode="fill"), "far write": x.at[far].add(1.0),
            "far traced": x.at[far_traced].add(1.0), "clip": x.at[far].set(0.0, mode="clip"),
            "empty": none[empty, empty], "empty axis": none[:, empty], "into": none.at[:, empty].set(1),
            "take": m.np.take(none, empty, axis=1), "vmap": m.vmap(lambda v, k: v[k])(x, far[:, None]
                [[0, 1, 1, 0], 0].astype(np.int8)),
            "bool": m.np.einsum("ij->j", x[0] > 3), "or": m.np.sum(x > 3, 0, bool),
            "and": m.np.prod(x > 3, dtype=bool), "count": m.np.sum(x > 3, promote_integers=False),
            "logs": m.lax.cumlogsumexp(x[0] * (1 + 1j)), "round": round(x[0] / 3),
            "mixed": m.lax.dot_general(x[0].astype("float16"), x[1], (((0,), (0,)), ((), ()))),
        }  # fmt: skip

    check_all(program, x, none, np.int8(-1), np.uint8(1), far, jit=True)


@pytest.mark.parametrize("call", [
    lambda m, x: x == [1, 2], lambda m, x: x != {}, lambda m, x: m.np.sort(m.np.float32(1)),
    lambda m, x: m.np.from_dlpack(3),
    lambda m, x: m.np.insert(m.np.int32(1), 0, 2, axis=0), lambda m, x: m.np.matvec(x, x),
    lambda m, x: m.np.put_along_axis(x[None], x[None], 1, None, inplace=False),
    lambda m, x: m.np.ediff1d(x > 0), lambda m, x: m.lax.pow(x, x),
    lambda m, x: m.lax.slice_in_dim(x, 2, 1), lambda m, x: m.lax.broadcasted_iota("int32", (3,), -1),
    lambda m, x: m.lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type="int8"),
    lambda m, x: m.module.random.permutation(m.module.random.key(0), 3, axis=1),
    lambda m, x: m.module.random.beta(m.module.random.key(0), 1.0, m.np.ones(2), dtype="float16"),
    lambda m, x: m.module.random.poisson(m.module.random.key(0), 2.0, dtype="float32"),
    lambda m, x: m.module.random.bernoulli(m.module.random.key(0), 2),
])  # fmt: skip
def test_what_jax_refuses_is_refused(call):
    """No result where JAX raises; the error's class is JAX's."""
    raised = []
    for m in (LAMINA, JAX):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(m, m.np.arange(3))
        raised.append(caught.value)
    assert type(raised[0]).__name__ == type(raised[1]).__name__
