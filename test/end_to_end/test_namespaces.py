"""The small namespaces (flatten_util, ops, image, scipy's small parts, ...) against JAX."""

import dataclasses

import jax
import jax.flatten_util
import jax.image
import jax.ops
import jax.scipy.cluster.vq
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.spatial.transform
import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina
import lamina.numpy as jnp
from lamina import errors, tree_util

RNG = np.random.default_rng(5)
CLOSE = {"rtol": 3e-4, "atol": 3e-5}
IMAGE = RNG.normal(size=(5, 6, 2)).astype(np.float32)


def test_ravel_pytree():
    def program(m):
        flat, back = m.module.flatten_util.ravel_pytree({"a": np.arange(3),
            "b": np.ones((2, 1), np.float32)})
        half, _ = m.module.flatten_util.ravel_pytree([np.float16(1), 2])
        grad = m.grad(lambda v: m.np.sum(back(v)["b"] ** 2))(flat)
        return flat, back(flat), half, grad, m.module.flatten_util.ravel_pytree([])[0]

    check(program)
    _, back = lamina.flatten_util.ravel_pytree({"a": np.arange(3), "b": np.ones(2, np.float32)})
    with pytest.raises(TypeError, match="dtype int32.*expected dtype float32"):
        back(np.arange(5))
    with pytest.raises(ValueError, match="expected shape"):
        back(np.ones(4, np.float32))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_segments(name):
    data = RNG.normal(size=(6, 2)).astype(np.float32)
    ids = np.array([0, 2, 2, -1, 5, 0])

    def program(m, d, i):
        f = getattr(m.module.ops, f"segment_{name}")
        return {
            "four": f(d, i, 4), "ints": f((d * 9).astype(np.int32), i, 4),
            "buckets": f(d, i, 7, bucket_size=2),
            "sorted": f(d, m.np.sort(i), 6, indices_are_sorted=True),
            "clip": f(d, i, 3, mode="clip"),
        }  # fmt: skip

    check_all(program, data, ids, jit=True, **CLOSE)
    check(lambda m: getattr(m.module.ops, f"segment_{name}")(data, ids), **CLOSE)
    with pytest.raises(errors.ConcretizationTypeError, match="num_segments"):
        lamina.jit(getattr(lamina.ops, f"segment_{name}"))(data, ids)


def test_images():
    methods = ["nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"]
    check_all(lambda m, x: {
        **{(k, s, a): m.module.image.resize(x, s, k, antialias=a) for k in methods
           for s in [(3, 4, 2), (9, 6, 2)] for a in (True, False)},
        **{k: m.module.image.scale_and_translate(x, (4, 4, 2), (0, -2), m.np.array([0.7, 1.5]),
                                                 m.np.array([0.3, -1.0]), k) for k in methods[1:]},
        "ints": m.module.image.resize(x.astype(np.int32), (3, 3, 2), "bilinear"),
        "grad": m.grad(lambda v: m.np.sum(m.module.image.resize(v, (3, 3, 2), "cubic") ** 2))(x),
    }, IMAGE, jit=True, **CLOSE)  # fmt: skip
    with pytest.raises(ValueError, match="Unknown resize method"):
        lamina.image.resize(IMAGE, (2, 2, 2), "foo")


def test_map_coordinates():
    places = RNG.uniform(-9, 12, (2, 7)).astype(np.float32)
    modes = ["constant", "nearest", "wrap", "mirror", "reflect"]
    check_all(lambda m, x, c: {
        **{(k, o): m.module.scipy.ndimage.map_coordinates(x, list(c), o, mode=k,
            cval=-5.0) for k in modes for o in (0, 1)},
        "ints": m.module.scipy.ndimage.map_coordinates((x * 9).astype(np.int32), list(c), 1),
        "grad": m.grad(lambda v: m.np.sum(m.module.scipy.ndimage.map_coordinates(v, list(c),
            1)))(x),
    }, IMAGE[..., 0], places, jit=True, **CLOSE)  # fmt: skip
    with pytest.raises(NotImplementedError, match="order"):
        lamina.scipy.ndimage.map_coordinates(IMAGE[..., 0], list(places), 2)


def test_interpolation_and_codes():
    grid = (np.array([1, 2, 3.0]), np.array([4, 5, 7.0]))
    points = np.array([[1.5, 4.5], [2.9, 6.8], [0, 5], [1, 4], [3, 7]], np.float32)

    def program(m, v, p):
        rgi, vq = m.module.scipy.interpolate.RegularGridInterpolator, m.module.scipy.cluster.vq.vq
        return {
            **{(k, f): rgi(grid, v, k, fill_value=f)(p) for k in ("linear",
                "nearest") for f in (np.nan, None, 0.0)},
            "tuple": rgi(grid, v)((p[:, 0], p[:, 1])), "vq": vq(p, p[1:3]),
            "vq1": vq(p[:, 0], p[:2, 1]),
            "trapezoid": m.module.scipy.integrate.trapezoid(v, axis=0),
        }  # fmt: skip

    check_all(program, IMAGE[:3, :3], points, jit=True, **CLOSE)
    with pytest.raises(ValueError, match="is not defined"):
        lamina.scipy.interpolate.RegularGridInterpolator(grid, IMAGE[:3, :3], "foo")


def test_rotations():
    quats = RNG.normal(size=(4, 4)).astype(np.float32)
    v = np.array([1, 2, 3.0], np.float32)

    def program(m, q, v):
        transform = m.module.scipy.spatial.transform
        Rotation, Slerp = transform.Rotation, transform.Slerp
        r = Rotation.from_quat(q)
        s = Slerp.init(np.array([0, 1, 2, 4.0], np.float32), r)
        return {
            "quat": (r.as_quat(), r.as_quat(canonical=True), r.as_quat(scalar_first=True)),
            "matrix": r.as_matrix(),
            "rotvec": (r.as_rotvec(), r.as_rotvec(degrees=True)), "mrp": r.as_mrp(),
            "size": r.magnitude(),
            **{k: r.as_euler(k) for k in ("xyz", "XYZ", "zxz", "ZYZ", "YXZ")},
            "apply": (r.apply(v), r.apply(v, inverse=True)),
            "back": Rotation.from_matrix(r.as_matrix()).as_quat(canonical=True),
            "inv": (r.inv() * r[0]).as_quat(),
            "from": (Rotation.from_rotvec(v).as_quat(), Rotation.from_mrp(v).as_quat(),
                Rotation.from_euler("xyz", v, degrees=True).as_quat(),
                     Rotation.from_euler("ZYX", v).as_quat(),
                     Rotation.from_euler("z", 1.2).as_quat()),
            "slerp": s(np.array([0.5, 1, 3.9, 0], np.float32)).as_matrix(), "one": s(0.25).as_quat(),
            "same": Rotation.identity().as_quat(),
        }  # fmt: skip

    check_all(program, quats, v, jit=True, rtol=1e-3, atol=1e-4)
    lock = lamina.scipy.spatial.transform.Rotation.from_euler("xyz",
        np.array([0.3, np.pi / 2, 0.1]))
    again = lamina.scipy.spatial.transform.Rotation.from_euler("xyz", lock.as_euler("xyz"))
    np.testing.assert_allclose(again.as_matrix(), lock.as_matrix(), atol=1e-3)
    with pytest.raises(ValueError, match="consecutive axes"):
        lamina.scipy.spatial.transform.Rotation.from_euler("xxz", v)
    with pytest.raises(TypeError, match="not subscriptable"):
        lamina.scipy.spatial.transform.Rotation.identity()[0]


def test_trees_with_paths():
    def program(module, kind, named):
        tu = module.tree_util

        @tu.register_dataclass
        @dataclasses.dataclass
        class Op:
            x: object
            y: int = module.tree.static(default=4)

        tu.register_dataclass(kind, ["x"], [], drop_fields=["y"])
        tu.register_pytree_with_keys(named,
            lambda n: (((tu.GetAttrKey("a"), n.a), ("b", n.b)), None),
                                     lambda _, c: named(*c))  # fmt: skip
        tree = {"a": [1, {2: 3}], "b": kind([5]), "n": named(1, (2,)), "o": Op(7), "none": None}
        pairs, treedef = tu.tree_flatten_with_path(tree)
        deep = tu.tree_leaves_with_path(tree, lambda path, _: len(path) == 1,
            is_leaf_takes_path=True)
        return {
            "keys": str([path for path, _ in pairs]), "str": [tu.keystr(p) for p, _ in pairs],
            "simple": [tu.keystr(p, simple=True, separator="/") for p, _ in pairs],
            "deep": str([p for p, _ in deep]),
            "map": str(tu.tree_leaves(tu.tree_map_with_path(lambda p, x: len(p) * x, tree))),
            "counts": (treedef.num_leaves, treedef.num_nodes, len(tu.treedef_children(treedef)),
                tu.treedef_is_leaf(treedef)),
            "tuple": tu.treedef_tuple([tu.tree_structure(1), treedef]).num_leaves,
            "all": (tu.all_leaves([1]), tu.all_leaves([[1]])),
            "spread": tu.tree_broadcast([1, 2], [[1, 2], {"a": 3}]),
            "fold": str(tu.tree_reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5])),
            "none": tu.tree_reduce_associative(max, [], identity=3),
            "level": str(tu.flatten_one_level({"a": 1})[0][0]),
            "keyed": str(list(tu.flatten_one_level_with_keys([1, (2,)])[0])),
            "node": (tu.is_tree_node(list), tu.is_tree_node(int)),
            "turned": tu.tree_transpose(tu.tree_structure({"a": 0, "b": 0}), None,
                {"a": [1, 2], "b": [3, 4]}),
            "registry": (tu.default_registry.flatten_one_level(1),
                str(tu.default_registry.flatten_one_level([1])[0])),
        }  # fmt: skip

    assert program(lamina, *_classes()) == program(jax, *_classes())
    with pytest.raises(ValueError, match="Missing fields: {'y'}.*drop_fields.*Unexpected fields: {'z'}"):
        tree_util.register_dataclass(dataclasses.make_dataclass("T", ["x", "y"]), ["x"], ["z"])
    with pytest.raises(TypeError, match="identity"):
        tree_util.tree_reduce_associative(max, [])


def _classes():
    @dataclasses.dataclass
    class Box:
        x: object
        y: int = 3

    class Named:
        def __init__(self, a, b):
            self.a, self.b = a, b

    return Box, Named


def test_environment(capsys):
    assert lamina.default_backend() == "cpu" and "numpy" in lamina.print_environment_info(return_string=True)
    lamina.print_environment_info()
    assert "lamina" in capsys.readouterr().out
    kept = jnp.arange(3)
    assert any(x is kept for x in lamina.live_arrays())
    f = lamina.jit(lambda x: x + 1)
    assert f(1) == 2
    lamina.clear_caches()
    assert f(1) == 2
    assert lamina.typeof(kept).shape == (3,) and lamina.typeof(1.0).weak_type
    assert lamina.named_call(lambda x: x * 2, name="twice")(3) == 6
    assert lamina.dtypes.itemsize_bits(jnp.int4) == 4 and lamina.dtypes.itemsize_bits(np.complex64) == 64
    assert lamina.dtypes.scalar_type_of(kept) is int
    assert lamina.dlpack.is_supported_dtype(np.float32) and not lamina.dlpack.is_supported_dtype(jnp.int4)
    assert isinstance(kept, lamina.typing.ArrayLike) and isinstance("f4", lamina.typing.DTypeLike)
    np.testing.assert_array_equal(lamina.dlpack.from_dlpack(np.arange(3)), kept)
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)
    assert issubclass(errors.TracerBoolConversionError, errors.JAXTypeError)
