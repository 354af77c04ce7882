"""The mistakes that users make most, made in lamina and in JAX: the class of the error is the same,
both texts hold the words that people search for, and ours names the user's function and line."""

import re
import warnings

import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina

X = np.arange(3, dtype=np.float32)
Y = np.ones(4, np.float32)


def bool_of_traced(m):
    def f(x, y):
        return x if x > y else y

    m.jit(f)(1.0, 2.0)


def numpy_of_traced(m):
    def f(x):
        return np.sin(np.asarray(x))

    m.jit(f)(X)


def index_of_traced(m):
    def f(i):
        return [1, 2, 3][i]

    m.jit(f)(1)


def float_of_traced(m):
    def f(x):
        return float(x) + 1

    m.jit(f)(np.float32(1))


def traced_shape(m):
    def f(n):
        return m.np.zeros((n,))

    m.jit(f)(3)


def traced_size_of_eye(m):
    def f(n):
        return m.np.eye(n)

    m.jit(f)(3)


def traced_axis(m):
    def f(x, axis):
        return m.np.sum(x, axis=axis)

    m.jit(f)(X, 0)


def format_of_traced(m):
    m.jit(lambda x: print(f"{x:.2f}"))(1.0)


def branch_in_vmap(m):
    m.vmap(lambda x: x if x > 0 else -x)(X)


def ranks_in_lax(m):
    m.lax.mul(X[:, None], X)


def shape_for_key(m):
    lamina.random.normal((3,))


def object_to_jit(m):
    class Model:
        pass

    m.jit(lambda model: 1)(Model())


def grad_of_pair(m):
    m.grad(lambda x: (x, x))(1.0)


def size_of_arange(m):
    m.jit(lambda n: m.np.arange(n))(3)


def out_of_a_ufunc(m):
    m.np.add(X, X, out=X)


def kept_from_grad(m):
    kept = []
    m.grad(lambda x: kept.append(x * 2) or x)(1.0)
    kept[0] + 1


def traced_stop(m):
    def f(n):
        return m.np.arange(0, n)

    m.jit(f)(3)


def traced_mask(m):
    def f(x):
        return x[x > 0]

    m.jit(f)(X)


def update_under_traced_mask(m):
    def f(x):
        return x.at[x > 0].add(m.np.arange(2.0))

    m.jit(f)(X)


def nonzero_without_size(m):
    def f(x):
        return m.np.nonzero(x)

    m.jit(f)(X)


def traced_slice(m):
    def f(x, i):
        return x[i : i + 2]

    m.jit(f)(X, 1)


def leak(m):
    kept = []

    def f(x):
        kept.append(m.np.sin(x))
        return x

    m.jit(f)(X)
    kept[0] + 1


def leak_of_vmap(m):
    kept = []

    def f(x):
        kept.append(m.np.sin(x))
        return x

    m.jit(m.vmap(f))(X)
    m.np.cos(kept[0])


def scan_carry_type(m):
    def f(carry, x):
        return {"n": carry["n"] + 0.5}, x

    m.lax.scan(f, {"n": m.np.int32(0)}, X)


def scan_carry_structure(m):
    def f(carry, x):
        return {"n": carry["n"], "m": x}, x

    m.lax.scan(f, {"n": m.np.int32(0)}, X)


def while_carry_shape(m):
    def body(val):
        return m.np.stack([val, val])

    m.lax.while_loop(lambda val: True, body, m.np.float32(0))


def fori_carry(m):
    def body(i, val):
        return val * 1j

    m.lax.fori_loop(0, 3, body, np.float32(0))


def cond_types(m):
    def small(x):
        return x.astype(m.np.int32)

    m.lax.cond(True, lambda x: x, small, X)


def cond_structures(m):
    def pair(x):
        return {"a": x, "b": x}

    m.lax.cond(True, lambda x: {"a": x}, pair, X)


def vmap_sizes(m):
    m.vmap(lambda x, y: x)(X, {"a": Y})


def vmap_out_axes(m):
    m.vmap(lambda x: x * 2, out_axes=None)(X)


def static_list(m):
    m.jit(lambda x, sizes: x, static_argnums=1)(X, [1])


def static_beyond(m):
    m.jit(lambda x: x, static_argnums=3)(X)


def argument_is_text(m):
    m.jit(lambda x, mode: x)(X, {"how": "fast"})


def number_too_large(m):
    m.jit(lambda x, n: x)(X, 2**40)


def shapes(m):
    m.np.ones((2, 3)) + m.np.ones((2, 4))


def list_to_sum(m):
    m.np.sum([1, 2])


def number_for_key(m):
    m.module.random.normal(3)


def reuse_of_donated(m):
    x = m.np.ones(3)
    m.jit(lambda x: x + 1, donate_argnums=0)(x)
    x + 1


def f8_sum(m):
    m.np.ones(2, m.np.float8_e4m3fn) + m.np.ones(2, np.float32)


def lax_dtypes(m):
    m.lax.add(m.np.ones(2), m.np.arange(2))


def grad_of_vector(m):
    m.grad(lambda x: x * 2)(X)


def grad_of_integer(m):
    m.grad(lambda x: x * 2.0)(3)


def reverse_while(m):
    m.grad(lambda x: m.lax.while_loop(lambda c: c < 10.0, lambda c: c * 2, x))(1.0)


def forward_of_custom_vjp(m):
    g = m.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    m.jvp(g, (1.0,), (1.0,))


def cotangent_structure(m):
    m.vjp(lambda x: (x, x), 1.0)[1](1.0)


def cotangent_dtype(m):
    m.vjp(lambda x: x, 1.0)[1](1)


def key_arithmetic(m):
    m.module.random.key(0) + 1


def batch_of_keys(m):
    m.module.random.uniform(m.module.random.split(m.module.random.key(0), 2))


def negative_fold(m):
    m.module.random.fold_in(m.module.random.key(0), -1)


def list_index(m):
    m.np.ones((3, 4))[[0, 1]]


def float_index(m):
    m.np.ones((3, 4))[1.0]


def dict_index(m):
    m.np.ones((3, 4))[{}]


def float_slice(m):
    m.np.ones(3)[1.0:]


def assignment(m):
    m.np.ones(3)[0] = 1


def negative_power(m):
    m.np.array([1, 2]) ** -1


def empty_maximum(m):
    m.np.max(m.np.zeros(0))


def vague_dot(m):
    m.lax.dot(m.np.ones((2, 3)), m.np.ones((2, 3)))


def argument_by_name(m):
    m.grad(lambda x: x.sum(), argnums="x")(X)


def name_is_a_number(m):
    m.jit(lambda x: x, static_argnames=0)(X)


def float_axis(m):
    m.np.sum(m.np.asarray(X), axis=0.0)


def pair_of_prefixes(m):
    m.lax.associative_scan(lambda a, b: (a, b), m.np.asarray(X))


def sum_of_prefixes(m):
    m.lax.associative_scan(lambda a, b: (a + b).sum(), m.np.asarray(X))


TRACED = ("while tracing the function f at", "for jit", "depends on the value of the argument")
CARRY = ("so the dtypes do not match", "Revise the function so that all output types match")
# The mistake: the words that both texts hold.
IN_TRACED_CODE = {
    bool_of_traced: ("Attempted boolean conversion of traced array with shape bool[].", *TRACED[:2]),
    numpy_of_traced: ("conversion method __array__() was called on traced array with shape float32[3]",
                      *TRACED, "argument x"),
    index_of_traced: ("The __index__() method was called on traced array with shape", *TRACED),
    float_of_traced: ("where concrete value is expected: traced array with shape float32[]",
                      "The problem arose with the `float` function", "x.astype(float)", *TRACED),
    traced_shape: ("Shapes must be 1D sequences of concrete values of integer type, got "
                   "(JitTracer(~int32[]),).", "static_argnums", *TRACED, "argument n"),
    traced_size_of_eye: ("Shapes must be 1D sequences of concrete values", *TRACED),
    traced_axis: ("The axis argument must be known statically.", *TRACED, "argument axis"),
    traced_stop: ("where concrete value is expected", "argument 'stop'", *TRACED, "argument n"),
    traced_mask: ("Array boolean indices must be concrete; got bool[3]",),
    update_under_traced_mask: ("Array boolean indices must be concrete; got bool[3]",),
    nonzero_without_size: ("The size argument of", "nonzero must be statically specified", *TRACED),
    traced_slice: ("Got slice(JitTracer(",),
    leak: ("intermediate value with type float32[3]", "The function being traced when the value leaked "
           "was f at", "for jit", "was created on line", "final 5", "CHECK_TRACER_LEAKS"),
    leak_of_vmap: ("unexpected tracer", "intermediate value with type float32["),
    scan_carry_type: ("scan body function carry input and carry output must have equal types",
                      "carry['n'] has type int32[] but the corresponding output carry component has type",
                      *CARRY),
    scan_carry_structure: ("carry output must have the same pytree structure, but they differ",
                           "so the numbers of children do not match, with the symmetric difference of "
                           "key sets: {'m'}"),
    while_carry_shape: ("while_loop body function carry input and carry output must have equal types",
                        "carry val has type float32[] but the corresponding", "float32[2], so the shapes "
                        "do not match"),
    fori_carry: ("loop_carry[1] has type float32[]", "complex64[]", *CARRY),
    cond_types: ("cond branches must have equal output types but they differ", "false_fun is small at",
                 "float32[3]", "int32[3]", "so the dtypes do not match", "Revise"),
    cond_structures: ("cond branch outputs must have the same pytree structure, but they differ",
                      "false_fun is pair at", "a <class 'dict'> with 2 children",
                      "symmetric difference of key sets: {'b'}"),
}  # fmt: skip
OF_CALLS = {
    vmap_sizes: ("vmap got inconsistent sizes for array axes to be mapped:", "one axis had size 3: axis 0 of "
                 "argument x of type float32[3]", "one axis had size 4: axis 0 of argument y['a'] of type float32[4]"),
    vmap_out_axes: ("vmap", "out_axes", "None"),
    static_list: ("Non-hashable static arguments are not supported", "<class 'list'>, [1]"),
    static_beyond: ("itted function has static_argnums=(3,)", "but only accepts 1 positional arguments"),
    argument_is_text: ("Error interpreting argument to", "as an abstract array", "<class 'str'>",
                       "at path mode['how']", "static_argnums"),
    number_too_large: ("argument path is n. Got <class 'int'> with value 1099511627776",),
    reuse_of_donated: ("Array has been deleted with shape=float32[3].",),
    f8_sum: ("no available implicit dtype promotion path", "8-bit floats do not support implicit"),
    lax_dtypes: ("lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is "
                 "a similar function that does automatic type promotion on inputs).",),
    grad_of_vector: ("Gradient only defined for scalar-output functions. Output had shape: (3,).",),
    grad_of_integer: ("grad requires real- or complex-valued inputs", "int32", "allow_int"),
    reverse_while: ("Reverse-mode differentiation does not work for lax.while_loop", "lax.scan"),
    forward_of_custom_vjp: ("can't apply forward-mode", "to a custom_vjp function"),
    cotangent_structure: ("unexpected tree structure", "* out was a <class 'tuple'> in the original output, "
                          "but a pytree leaf here, so their Python types differ"),
    cotangent_dtype: ("for argument to VJP function: got", "int32[], but expected",
                      "because the corresponding output of the differentiated function had"),
    key_arithmetic: ("add does not accept dtypes key<fry>, int32.",),
    batch_of_keys: ("uniform accepts a single key, but was given a key array of shape (2,) != (). Use",
                    "vmap for batching"),
    negative_fold: ("Python integer -1 out of bounds for uint32",),
    list_index: ("Using a non-tuple sequence for multidimensional indexing is not allowed; use "
                 "`arr[array(seq)]` instead of `arr[seq]`.",),
    float_index: ("Indexer must have integer or boolean type, got indexer with type float64",),
    dict_index: ("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean "
                 "arrays are valid indices. Got {}",),
    float_slice: ("'float' object cannot be interpreted as an integer",),
    assignment: ("arrays are immutable", "use x = x.at[idx].set(y)"),
    negative_power: ("Integers cannot be raised to negative powers, got integer_pow",),
    empty_maximum: ("zero-size array to reduction operation max which has no identity",),
    vague_dot: ("lax.dot: dimension_numbers must be specified", "got lhs_shape=(2, 3) rhs_shape=(2, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", [*IN_TRACED_CODE, *OF_CALLS], ids=lambda f: f.__name__)
def test_class_and_words_are_jax_s(mistake):
    raised = []
    for m in (oracle.JAX, oracle.LAMINA):
        with pytest.raises(Exception) as e, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mistake(m)
        raised.append(e.value)
        for words in IN_TRACED_CODE.get(mistake) or OF_CALLS[mistake]:
            assert words in str(e.value), (m.name, words, str(e.value))
    theirs, ours = raised
    assert type(ours).__name__ == type(theirs).__name__
    builtin = [[c for c in type(x).__mro__ if c.__module__ == "builtins"] for x in raised]
    assert builtin[0] == builtin[1]
    if mistake in IN_TRACED_CODE:
        first, last = _lines(mistake.__code__)
        named = re.findall(re.escape(__file__) + r":(\d+)", str(ours))
        assert any(first <= int(n) <= last for n in named), str(ours)


def _lines(code):
    """The first and last line of a function, of those inside it too."""
    inner = [_lines(c) for c in code.co_consts if hasattr(c, "co_code")]
    own = [n for *_, n in code.co_lines() if n]
    return min(own), max(own + [last for _, last in inner])


def test_a_donated_array_that_no_result_can_take_is_told():
    x = lamina.numpy.ones(3)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]\."):
        lamina.jit(lambda x: x.sum(), donate_argnums=0)(x)


ADVICE = {
    reuse_of_donated: "use what the call returned, or do not donate what is needed afterwards",
    grad_of_vector: "Reduce it to one number (its sum or mean), or take all derivatives by jacrev",
    grad_of_integer: "To differentiate by it pass floats (2.0 for 2, x.astype(float) for x)",
    float_index: "for axis 0: 1.0. Convert it by int() or .astype(int)",
    list_to_sum: "lamina.numpy.asarray makes an array of it",
    number_for_key: "lamina.random.key(seed) makes a key of a number",
    shapes: "must be equal, or 1; along axis 1 they are 3 and 4",
    static_list: "pass a tuple instead of a list, or leave the argument traced",
    format_of_traced: "Print it when it is computed: lamina.debug.print('{x:.2f}', x=x)",
    branch_in_vmap: "one of 3 lanes of a vmap, which run as one program",
    ranks_in_lax: "got shapes (3, 1), (3,). The functions of lamina.numpy broadcast them",
    shape_for_key: "the first argument is a key, as lamina.random.key(seed) makes it",
    object_to_jit: "if its class holds arrays, tell of them by lamina.tree_util.register_dataclass",
    grad_of_pair: "return (value, rest) and set has_aux=True",
    size_of_arange: "argument 'stop'",
    out_of_a_ufunc: "arrays are immutable, use what it returns",
    kept_from_grad: "was one that is differentiated (grad, jvp, vjp, ...)",
    argument_by_name: "To differentiate by an argument given by name, give it a position",
    name_is_a_number: "static_argnames must be names of arguments, got 0",
    float_axis: "axis must be None, an integer or some integers, got 0.0",
    pair_of_prefixes: "must return one such tree, but <lambda> at ",
    sum_of_prefixes: "took f32[1] and returned f32[]",
}


@pytest.mark.parametrize("mistake", ADVICE, ids=lambda f: f.__name__)
def test_what_to_do_is_said(mistake):
    with pytest.raises(Exception) as e:
        mistake(oracle.LAMINA)
    assert ADVICE[mistake] in str(e.value)


@pytest.mark.parametrize(
    "mistake", [shapes, lambda m: m.lax.add(m.np.ones((2, 3)), m.np.ones((4, 3)))]
)
def test_tracebacks_of_operators_end_near_the_user_s_line(mistake):
    filtered = lamina.config.traceback_filtering("auto")
    with filtered, pytest.raises(TypeError, match="incompatible shapes") as e:
        mistake(oracle.LAMINA)
    files = [str(entry.path) for entry in e.traceback]
    last = max(i for i, path in enumerate(files) if path == __file__)
    assert len(files) - 1 - last <= 3
    assert "LAMINA_TRACEBACK_FILTERING=off" in e.value.__notes__[0]
