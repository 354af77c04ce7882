"""The jit call: what is a hit, what goes to miss, statics, trees in and out, life of the object."""

import collections
import functools
import gc
import threading
import weakref

import numpy as np
import pytest
from support.llvm_objects import ADD_ONE, artifact

from lamina import runtime
from lamina.array import ArrayImpl, from_numpy
from lamina.runtime import CompiledFunction, FastPathEntry
from lamina.runtime.executable import load

Point = collections.namedtuple("Point", "x y")


class Recorder:
    """A jit whose function runs in Python: tells the misses, and what leaves a call had."""

    def __init__(self, unflatten=None, statics=((), ())):
        self.misses = 0
        self.leaves = None
        self.unflatten = unflatten or (lambda arrays: [a.tolist() for a in arrays])
        self.call = CompiledFunction(self.miss, *statics)
        self.static_names = set(statics[1])
        self.static_nums = set(statics[0])

    def miss(self, args, kwargs):
        self.misses += 1
        dynamic = [a for i, a in enumerate(args) if i not in self.static_nums]
        named = {k: v for k, v in kwargs.items() if k not in self.static_names}
        count = len(flat((dynamic, named)))
        return FastPathEntry(list, range(count), out_tree=self.unflatten, outputs=range(count))


def flat(tree):
    """Leaves in canonical order."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in flat(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for child in tree for leaf in flat(child)]
    return [tree]


@pytest.fixture
def add_one():
    return load(artifact(ADD_ONE, [("float32", ())], [("float32", ())]))


def test_an_executable_behind_the_fast_path(add_one):
    misses = []

    def miss(args, kwargs):
        misses.append(args)
        return FastPathEntry(add_one, [0], out_tree=0)

    f = CompiledFunction(miss)
    assert f(np.float32(1)).item() == 2 and len(misses) == 1
    assert f(from_numpy(np.float32(2))).item() == 3 and len(misses) == 1  # ndarray = Array
    assert f(3.0).item() == 4 and len(misses) == 2  # weakly typed
    assert f(np.array(5.0)).item() == 6 and len(misses) == 2  # float64 without x64
    assert f.cache_size() == 2 and add_one.calls == 4
    f.clear_cache()
    assert f(np.float32(1)).item() == 2 and len(misses) == 3


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        True,
        3,
        2j,
        np.float32(1.5),
        np.arange(3, dtype=np.int8),
        (1.0, [2.0, (3.0,)]),
        {"b": 1.0, "a": (2.0, None), "c": {}},
        {2: 1.0, 1: 2.0},
        Point(1.0, Point(2.0, None)),
        [],
        None,
    ],
    ids=repr,
)
def test_same_kind_of_call_hits(value):
    recorder = Recorder(lambda arrays: [np.asarray(a).tolist() for a in arrays])
    expected = [np.asarray(leaf).tolist() for leaf in flat(value)]
    for _ in range(3):
        assert recorder.call(value) == expected
    assert recorder.misses == 1


DIFFERENT = [
    (1.0, 1),
    (1.0, True),
    (1, True),
    (1.0, np.float32(1)),
    (1.0, 1j),
    (np.zeros(2), np.zeros(3)),
    (np.zeros(2), np.zeros((2, 1))),
    (np.zeros(2, np.int8), np.zeros(2, np.uint8)),
    ((1.0,), [1.0]),
    ((1.0,), 1.0),
    ((1.0, (2.0,)), ((1.0, 2.0),)),
    ({"a": 1.0}, {"b": 1.0}),
    ({1: 1.0}, {True: 1.0}),
    ({"a": 1.0}, {"a": 1.0, "b": 2.0}),
    (None, ()),
    ((1.0, None), (1.0,)),
    (Point(1.0, 2.0), (1.0, 2.0)),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT, ids=repr)
def test_another_kind_of_call_misses(first, second):
    recorder = Recorder()
    recorder.call(first)
    recorder.call(second)
    assert recorder.misses == 2
    recorder.call(first)
    recorder.call(second)
    assert recorder.misses == 2


def test_leaves_come_in_canonical_order():
    recorder = Recorder()
    assert recorder.call({"b": 1, "a": 2}, z=3, y={"q": 4, "p": 5}) == [2, 1, 5, 4, 3]
    # Other orders are other entries of the cache, with the same leaves.
    assert recorder.call({"a": 2, "b": 1}, y={"p": 5, "q": 4}, z=3) == [2, 1, 5, 4, 3]
    assert recorder.misses == 2


def test_positional_and_keyword_arguments_differ():
    recorder = Recorder()
    recorder.call(1.0, 2.0)
    recorder.call(1.0, y=2.0)
    recorder.call(1.0, z=2.0)
    assert recorder.misses == 3


@pytest.mark.parametrize("other", [1.0, True, np.int64(1), 2, "1"], ids=repr)
def test_static_values_compare_with_their_type(other):
    recorder = Recorder(statics=((1,), ("mode",)))
    recorder.call(1.0, 1)
    recorder.call(1.0, mode=1)
    assert recorder.misses == 2
    recorder.call(2.0, 1)
    recorder.call(2.0, mode=1)
    assert recorder.misses == 2
    recorder.call(1.0, other)
    recorder.call(1.0, mode=other)
    assert recorder.misses == 4


def test_static_values_need_equal_hash_and_eq():
    class Setting:
        def __init__(self, value, code):
            self.value, self.code = value, code

        def __eq__(self, other):
            return self.value == other.value

        def __hash__(self):
            return self.code

    recorder = Recorder(statics=((0,), ()))
    recorder.call(Setting("a", 1), 1.0)
    recorder.call(Setting("a", 1), 1.0)
    assert recorder.misses == 1
    recorder.call(Setting("b", 1), 1.0)
    assert recorder.misses == 2
    recorder.call(Setting("b", 2), 1.0)
    assert recorder.misses == 3


def test_an_eq_that_raises_is_the_callers_error():
    class Bad:
        def __eq__(self, other):
            raise ArithmeticError("no comparison today")

        def __hash__(self):
            return 3

    recorder = Recorder(statics=((0,), ()))
    recorder.call(Bad())
    with pytest.raises(ArithmeticError, match="no comparison today"):
        recorder.call(Bad())


def test_an_eq_that_calls_the_function_itself():
    recorder = Recorder(statics=((0,), ()))

    depth = [0]

    class Nested:
        def __eq__(self, other):
            depth[0] += 1
            if depth[0] < 3:
                recorder.call(Nested(), 1.0)
            recorder.call.clear_cache()
            return True

        def __hash__(self):
            return 5

    recorder.call(Nested(), 1.0)
    assert recorder.call(Nested(), 7.0) == [7.0]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("text", id="str"),
        pytest.param(object(), id="object"),
        pytest.param({1, 2}, id="set"),
        pytest.param([object()], id="list of an object"),
        pytest.param(np.array(["a"]), id="ndarray of str"),
        pytest.param(2**31, id="int beyond int32"),
    ],
)
def test_what_only_python_understands_goes_to_miss_each_time(value):
    calls = []

    def miss(args, kwargs):
        calls.append((args, kwargs))
        return "answer", None

    f = CompiledFunction(miss)
    for _ in range(2):
        assert f(value, k=value) == "answer"
    assert len(calls) == 2 and calls[0][0][0] is value and calls[0][1]["k"] is value


def test_unsortable_keys_are_an_error_where_miss_does_not_notice():
    f = Recorder().call
    with pytest.raises(TypeError, match="not supported between"):
        f({"a": 1.0, 2: 3.0})
    assert f.cache_size() == 0


def test_an_entry_for_a_call_that_only_python_can_flatten():
    entry = FastPathEntry(list, [0], out_tree=0, outputs=[0])
    f = CompiledFunction(lambda args, kwargs: entry)
    with pytest.raises(TypeError, match="only Python can flatten"):
        f("text")
    g = CompiledFunction(lambda args, kwargs: (entry([len(args[0])]), entry))
    assert g("text").item() == 4 and g.cache_size() == 0


def test_registered_nodes_are_flattened_on_the_fast_path():
    class Node:
        def __init__(self, children, aux):
            self.children, self.aux = children, aux

    runtime.register_node(Node, lambda node: (node.children, node.aux))
    recorder = Recorder(lambda arrays: [a.item() for a in arrays])
    entry = FastPathEntry(list, [0, 1], out_tree=recorder.unflatten, outputs=[0, 1])
    misses = []
    f = CompiledFunction(lambda args, kwargs: misses.append(1) or entry)
    assert f([Node((1, 2), "x")]) == [1, 2]
    assert f([Node([3, 4], "x")]) == [3, 4] and len(misses) == 1
    f([Node((1, 2), "y")])
    assert len(misses) == 2
    f([Node((1, (2,)), "y")])
    assert len(misses) == 3
    g = CompiledFunction(lambda args, kwargs: ("unhashable", None))
    assert g(Node((1,), [])) == "unhashable" and g.cache_size() == 0
    with pytest.raises(TypeError, match="a type and a callable"):
        runtime.register_node(3, len)


def test_tracing_sends_this_thread_to_miss():
    calls = []
    f = CompiledFunction(lambda args, kwargs: (calls.append(1), None))
    entry = FastPathEntry(list, [0], out_tree=0, outputs=[0])
    g = CompiledFunction(lambda args, kwargs: entry)
    g(1.0)
    assert runtime.set_tracing(True) is False and runtime.is_tracing()
    try:
        f(1.0)
        f(1.0)
        with pytest.raises(TypeError, match="only Python can flatten"):
            g(1.0)
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(g(1.0)))
        thread.start()
        thread.join()
    finally:
        assert runtime.set_tracing(False) is True
    assert len(calls) == 2 and elsewhere[0].item() == 1.0


def test_configuration_is_part_of_the_signature():
    recorder = Recorder(lambda arrays: arrays[0].dtype.name)
    assert recorder.call(1.0) == "float32"
    try:
        runtime.set_thread_config(7, True)
        assert recorder.call(1.0) == "float64" and recorder.misses == 2
        runtime.set_thread_config(8, True)
        recorder.call(1.0)
        assert recorder.misses == 3
    finally:
        runtime.clear_thread_config()
    assert recorder.call(1.0) == "float32" and recorder.misses == 3


def test_kept_constants_outputs_and_weak_types(add_one):
    constant = from_numpy(np.float32(40))
    passed = from_numpy(np.arange(3))
    f = CompiledFunction(
        lambda args, kwargs: FastPathEntry(
            add_one, [], consts=[constant], out_tree={"sum": 0, "same": (1, None), "x": [0]},
            weak_types=[True, False], outputs=[0, ~1],
        )
    )  # fmt: skip
    for _ in range(2):
        result = f(1.0, passed)
        assert list(result) == ["sum", "same", "x"]
        assert result["sum"].item() == 41 and result["sum"].weak_type
        same, nothing = result["same"]
        assert nothing is None and same is not passed
        assert same.unsafe_buffer_pointer() == passed.unsafe_buffer_pointer()
        assert result["x"][0] is result["sum"]


def test_output_trees():
    def entry(template, count):
        return FastPathEntry(list, range(count), out_tree=template, outputs=range(count))

    arrays = [from_numpy(np.int32(i)) for i in range(3)]
    assert entry((), 0)([]) == () and entry(None, 0)([]) is None
    assert entry([0, (1,), {"k": 2}], 3)(arrays) == [arrays[0], (arrays[1],), {"k": arrays[2]}]
    point = entry(Point(1, 0), 2)(arrays)
    assert type(point) is Point and point.x is arrays[1]
    with pytest.raises(ValueError, match="names result 3 of 3"):
        entry((3,), 3)
    with pytest.raises(TypeError, match="out_tree holds a set"):
        entry({0}, 1)
    with pytest.raises(ZeroDivisionError):
        entry(lambda arrays: 1 / 0, 1)(arrays)


def test_entries_are_checked(add_one):
    with pytest.raises(TypeError, match="needs an executable and an out_tree"):
        FastPathEntry(add_one, [0])
    with pytest.raises(TypeError, match="its number is not known"):
        FastPathEntry(list, [0], out_tree=0)
    with pytest.raises(ValueError, match="negative leaf index"):
        FastPathEntry(add_one, [-1], out_tree=0)
    with pytest.raises(ValueError, match="result 1 of 1"):
        FastPathEntry(add_one, [0], out_tree=0, outputs=[1])
    with pytest.raises(ValueError, match="differ in length"):
        FastPathEntry(add_one, [0], out_tree=0, weak_types=[])
    with pytest.raises(TypeError, match="consts is a sequence of Arrays"):
        FastPathEntry(add_one, [], consts=[1.0], out_tree=0)
    entry = FastPathEntry(add_one, [1], out_tree=0)
    assert entry.executable is add_one
    with pytest.raises(TypeError, match="an entry for 2 leaves was given 1"):
        entry([1.0])
    with pytest.raises(TypeError, match=r"got int32\[\], expected float32\[\]"):
        entry([1, 2])
    with pytest.raises(TypeError, match="leaf 1 is a str"):
        entry([1, "a"])
    f = CompiledFunction(lambda args, kwargs: FastPathEntry(add_one, [0], out_tree=0))
    with pytest.raises(TypeError, match=r"got int32\[\], expected float32\[\]"):
        f(1)
    assert f.cache_size() == 0
    bad = FastPathEntry(lambda arrays: ["no array"], [0], out_tree=0, outputs=[0])
    with pytest.raises(TypeError, match="an executable gave a str"):
        bad([1.0])
    few = FastPathEntry(lambda arrays: [], [0], out_tree=0, outputs=[0])
    with pytest.raises(ValueError, match="gave 0 results"):
        few([1.0])


def test_answers_of_miss_are_checked():
    for wrong in (None, 3, (1, 2, 3), [1, None]):
        with pytest.raises(TypeError, match="miss gives a FastPathEntry or"):
            CompiledFunction(lambda args, kwargs, wrong=wrong: wrong)(1.0)
    with pytest.raises(ZeroDivisionError):
        CompiledFunction(lambda args, kwargs: 1 / 0)(1.0)
    with pytest.raises(TypeError, match="miss must be callable"):
        CompiledFunction(3)
    with pytest.raises(ValueError, match="not negative"):
        CompiledFunction(print, [-1])
    with pytest.raises(TypeError, match="sequence of str"):
        CompiledFunction(print, [], [1])


def test_methods_bind_their_instance():
    class Model:
        @CompiledFunction
        def forward(args, kwargs):
            return (args, kwargs), None

    model = Model()
    assert model.forward(1, k=2) == ((model, 1), {"k": 2})
    assert Model.forward(model) == ((model,), {})
    assert isinstance(Model.__dict__["forward"], CompiledFunction)


def test_attributes_and_wrapping():
    def original(x):
        """What it says."""

    f = CompiledFunction(lambda args, kwargs: (None, None))
    functools.update_wrapper(f, original)
    f.lower = 3
    assert f.__wrapped__ is original and f.__name__ == "original" and f.lower == 3
    assert f.__doc__ == "What it says." and "original" in repr(f)
    with pytest.raises(AttributeError):
        f.nothing  # noqa: B018


def test_cycles_through_a_function_are_collected():
    def make():
        def miss(args, kwargs):
            return FastPathEntry(lambda arrays, f=f: arrays, [0], out_tree=0, outputs=[0])

        f = CompiledFunction(miss)
        f.itself = f
        f(1.0)
        return weakref.ref(f)

    reference = make()
    gc.collect()
    assert reference() is None


def test_arguments_are_not_kept_alive():
    recorder = Recorder(lambda arrays: None)
    array = from_numpy(np.zeros(3))
    alive = weakref.ref(array)
    recorder.call({"a": [array]})
    recorder.call({"a": [array]})
    del array
    assert alive() is None


def test_the_least_recently_used_signature_is_forgotten():
    entry = FastPathEntry(list, [], out_tree=None, outputs=[])
    f = CompiledFunction(lambda args, kwargs: entry, [0])
    for i in range(8192):
        f(i)
    f(0)
    f(8192)
    assert f.cache_size() == 8192
    misses = []
    f = CompiledFunction(lambda args, kwargs: misses.append(args[0]) or entry, [0])
    for i in [*range(8192), 0, 8192, 0, 1]:
        f(i)
    assert misses == [*range(8192), 8192, 1]


def test_miss_may_empty_the_containers_of_its_call():
    def miss(args, kwargs):
        args[0].clear()
        gc.collect()
        return FastPathEntry(list, [0, 1], out_tree=[0, 1], outputs=[0, 1])

    f = CompiledFunction(miss)
    result = f([from_numpy(np.float32(1)), 2.5])
    assert [a.item() for a in result] == [1.0, 2.5]


def test_deep_containers_go_to_miss():
    deep = 1.0
    for _ in range(5000):
        deep = [deep]
    assert CompiledFunction(lambda args, kwargs: ("deep", None))(deep) == "deep"


def test_calls_from_several_threads():
    recorder = Recorder()
    errors = []

    def work(seed):
        for i in range(300):
            if recorder.call({"a": float(seed), "b": (i,)}) != [float(seed), i]:
                errors.append((seed, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and recorder.call.cache_size() >= 1


def test_results_are_arrays(add_one):
    f = CompiledFunction(lambda args, kwargs: FastPathEntry(add_one, [0], out_tree=0))
    assert type(f(1.0)) is ArrayImpl
