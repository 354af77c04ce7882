"""Trees of arrays that were saved come back over any mesh, whole, whatever happens while they are written."""

import collections
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices import eight_devices as eight_devices

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.experimental.array_serialization.pytree_serialization import (
    load,
    load_pytreedef,
    save,
)
from lamina.sharding import NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.usefixtures("eight_devices")

Moments = collections.namedtuple("Moments", "first second")


def _here() -> SingleDeviceSharding:
    return SingleDeviceSharding(lamina.devices()[0])


def _same(found: Any, wanted: Any) -> None:
    assert lamina.tree.structure(found) == lamina.tree.structure(wanted)
    for a, b in zip(lamina.tree.leaves(found), lamina.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("start", [P(), P("x"), P(None, "x"), P("y", "x"), P(("x", "y"))])
@pytest.mark.parametrize("end", [P(), P("a"), P(None, "a")])
def test_from_one_mesh_to_another(start: P, end: P, tmp_path: Path) -> None:
    data = np.random.default_rng(0).standard_normal((8, 24)).astype(np.float32)
    mesh, other = lamina.make_mesh((4, 2), ("x", "y")), lamina.make_mesh((2,), ("a",))
    save([lamina.device_put(data, NamedSharding(mesh, start))], tmp_path)
    (found,) = load(tmp_path, NamedSharding(other, end))
    assert found.sharding == NamedSharding(other, end)
    np.testing.assert_array_equal(np.asarray(found), data)
    ((index,),) = [json.loads((tmp_path / "index.json").read_text())["arrays"]]
    assert len(index["parts"]) == mesh.size // NamedSharding(mesh, start).indices((8, 24)).count(
        NamedSharding(mesh, start).indices((8, 24))[0]
    )


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float16", "float8_e4m3fn", "int4", "bool", "complex64", "uint8"],
)
def test_types_and_shapes(dtype: str, tmp_path: Path) -> None:
    special = [2, 4] if dtype in ("int4", "uint8") else [np.nan, -1.5]
    bits = np.array([0.0, -0.0, 1, 3, 7, *special])
    data = {
        "vector": jnp.asarray(bits).astype(dtype),
        "number": jnp.ones((), dtype),
        "none": jnp.zeros((0, 3), dtype),
        "rows": lamina.device_put(
            jnp.ones((8, 2), dtype), NamedSharding(lamina.make_mesh((8,), ("x",)), P("x"))
        ),
    }
    save(data, tmp_path)
    _same(load(tmp_path, _here()), data)


def test_trees(tmp_path: Path) -> None:
    data = {
        "a": [jnp.arange(2), None, (jnp.arange(3.0), {})],
        "b": {1: np.arange(4, dtype=np.int32)},
    }
    save(data, tmp_path)
    _same(load(tmp_path, _here()), data)
    shapes = load_pytreedef(tmp_path)
    assert shapes["a"][2][0] == lamina.ShapeDtypeStruct((3,), np.float32)
    assert shapes["a"][1] is None
    part = load(tmp_path, _here(), mask={"a": True, "b": False})
    assert part["b"] == {1: None} and part["a"][0].tolist() == [0, 1]
    mesh = lamina.make_mesh((2,), ("x",))
    placed = load(tmp_path, {"a": _here(), "b": NamedSharding(mesh, P("x"))})
    assert placed["b"][1].sharding.spec == P("x")
    save(jnp.arange(3), tmp_path / "alone")
    assert load(tmp_path / "alone", _here()).tolist() == [0, 1, 2]


def test_nodes_of_the_program(tmp_path: Path) -> None:
    state = {"moments": Moments(jnp.ones(2), jnp.zeros(3)), "step": jnp.int32(4)}
    save(state, tmp_path)
    with pytest.raises(ValueError, match="has a .*Moments, which only the program can make"):
        load(tmp_path, _here())
    _same(load(tmp_path, lamina.tree.map(lambda x: x.sharding, state)), state)
    like = lamina.tree.map(
        lambda x: lamina.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state
    )
    _same(load(tmp_path, like), state)


def test_overwriting(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for value in range(3):
        save([jnp.full(3, value)], tmp_path)
        assert load(tmp_path, _here())[0].tolist() == [value] * 3
    with pytest.raises(ValueError, match="overwrite is False"):
        save([jnp.ones(3)], tmp_path, overwrite=False)
    # Nothing is left of former ones, and nothing else is touched.
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.partition("-")[0] for name in names] == ["data", "index.json", "notes.txt"]


class _Killed(BaseException):
    """What ends a save as SIGKILL does: nothing is cleaned up behind it."""


def test_ended_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any number of steps on the disk there is the old checkpoint or the new one."""
    from lamina.experimental.array_serialization import pytree_serialization as module

    mesh = lamina.make_mesh((4,), ("x",))

    def state(value: int) -> dict[str, Any]:
        x = lamina.device_put(jnp.full((4, 2), value), NamedSharding(mesh, P("x")))
        return {"x": x, "step": jnp.int32(value)}

    save(state(0), tmp_path)
    real, left = os.fsync, [0]

    def fsync(number: int) -> None:
        if not left[0]:
            raise _Killed
        left[0] -= 1
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(module.shutil, "rmtree", lambda *a, **k: None)
    values, steps = [], 0
    while not values or values[-1] == 0 or steps < 8:
        left[0] = steps
        try:
            save(state(1), tmp_path)
        except _Killed:
            pass
        found = load(tmp_path, _here())
        assert set(np.asarray(found["x"]).ravel()) == {int(found["step"])}
        values.append(int(found["step"]))
        steps += 1
        assert steps < 20
    assert 6 <= values.count(0) and values[-1] == 1
    monkeypatch.undo()
    save(state(2), tmp_path)
    assert sorted(p.name[:5] for p in tmp_path.iterdir()) == ["data-", "index"]


def test_what_is_missing_or_differs(tmp_path: Path) -> None:
    mesh = lamina.make_mesh((4,), ("x",))
    data = {"w": lamina.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))}
    with pytest.raises(FileNotFoundError, match="there is no checkpoint in"):
        load(tmp_path, _here())
    save(data, tmp_path)
    (folder,) = tmp_path.glob("data-*")
    part = folder / "0.2.0.npy"
    whole = part.read_bytes()
    part.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"0\.2\.0\.npy is missing, which has \[\[4, 6\]\] of \['w'\]"
    ):
        load(tmp_path, _here())
    part.write_bytes(whole[:-3])
    with pytest.raises(ValueError, match=r"0\.2\.0\.npy, a part of \['w'\], is damaged"):
        load(tmp_path, _here())
    np.save(part, np.zeros(3, np.float32))
    with pytest.raises(
        ValueError, match=r"has float32\[3\], and by the index a part of \['w'\], float32\[2\]"
    ):
        load(tmp_path, _here())
    part.write_bytes(whole)
    like = lamina.ShapeDtypeStruct((4,), np.float32, sharding=_here())
    with pytest.raises(ValueError, match=r"\['w'\] was saved as float32\[8\], and float32\[4\]"):
        load(tmp_path, {"w": like})
    with pytest.raises(ValueError, match="shardings is no prefix of the tree that was saved"):
        load(tmp_path, {"v": _here()})
    with pytest.raises(TypeError, match="is to lie is a str, no sharding"):
        load(tmp_path, "cpu")
    index = json.loads((tmp_path / "index.json").read_text())
    index["arrays"][0]["parts"].pop()
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"the index knows no file for 2 elements of \['w'\]"):
        load(tmp_path, _here())
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(ValueError, match="is no index of a checkpoint"):
        load(tmp_path, _here())


def test_what_can_not_be_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"\['a'\] is a float: leaves are arrays or None"):
        save({"a": 1.0}, tmp_path)
    with pytest.raises(TypeError, match="save random.key_data of it"):
        save([lamina.random.key(0)], tmp_path)
    with pytest.raises(ValueError, match="folders that all processes see"):
        save([jnp.ones(2)], "gs://bucket/checkpoint")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        save([jnp.ones(2)], tmp_path / "file")
