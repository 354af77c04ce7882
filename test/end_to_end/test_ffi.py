"""Compiled functions of other libraries: handlers built with XLA's headers, called by us and by JAX."""

import ctypes
import subprocess

import jax
import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, assert_same

import lamina
import lamina.numpy as jnp
from lamina import ffi

SOURCE = r"""
#include <cmath>
#include <cstring>
#include <chrono>
#include <string_view>
#include <thread>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

// y = scale * x ** power + shift[i % n], and the number of elements.
ffi::Error Scaled(ffi::Buffer<ffi::F32> x, float scale, int64_t power, bool negate, std::string_view mode,
                  ffi::Span<const float> shift, ffi::ResultBuffer<ffi::F32> y, ffi::ResultBuffer<ffi::S32> n) {
  if (mode != "plain") return ffi::Error::InvalidArgument("mode must be plain, not " + std::string(mode));
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = scale * std::pow(negate ? -x.typed_data()[i] : x.typed_data()[i], power)
                         + shift[i % shift.size()];
  n->typed_data()[0] = x.element_count();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scaled, Scaled, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Attr<float>("scale").Attr<int64_t>("power").Attr<bool>("negate")
    .Attr<std::string_view>("mode").Attr<ffi::Span<const float>>("shift")
    .Ret<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::S32>>());

// Any dtype: bytes as they lie in memory, then the dimensions.
ffi::Error Memory(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(memory, Memory, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// Adds to what is in the result's memory.
ffi::Error AddTo(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_to, AddTo,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

ffi::Error Nested(ffi::Dictionary options, ffi::ResultBuffer<ffi::F32> y) {
  auto value = options.get<float>("value");
  if (value.has_error()) return value.error();
  y->typed_data()[0] = *value;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(nested, Nested,
    ffi::Ffi::Bind().Attr<ffi::Dictionary>("options").Ret<ffi::Buffer<ffi::F32>>());

ffi::Error Scratch(ffi::ScratchAllocator scratch, ffi::ResultBuffer<ffi::F32> y) {
  if (!scratch.Allocate(8).has_value()) return ffi::Error::Internal("no memory");
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scratch, Scratch,
    ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ret<ffi::Buffer<ffi::F32>>());

// Goes on after it has returned: in XLA's threads, and in one of its own.
ffi::Future Later(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, bool fails, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  const float* from = x.typed_data();
  float* to = y->typed_data();
  const size_t count = x.element_count() * (pool.num_threads() > 0);
  pool.Schedule([=, promise = std::move(promise)]() mutable {
    std::thread([=, promise = std::move(promise)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (size_t i = 0; i < count; ++i) to[i] = 2 * from[i];
      if (fails) promise.SetError(ffi::Error::Internal("later it failed"));
      else promise.SetAvailable();
    }).detach();
  });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later, ffi::Ffi::Bind().Ctx<ffi::ThreadPool>()
    .Arg<ffi::Buffer<ffi::F32>>().Attr<bool>("fails").Ret<ffi::Buffer<ffi::F32>>());
"""
NAMES = ("scaled", "memory", "add_to", "nested", "scratch", "later")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
OPTIONS = {"scale": np.float32(0.5), "power": 3, "negate": True, "mode": "plain",
           "shift": np.array([10, 20, 30], np.float32)}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def handlers(tmp_path_factory):
    """The library above, registered with lamina and with JAX."""
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "handlers.cc").write_text(SOURCE)
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{ffi.include_dir()}", "handlers.cc", "-o",
         "handlers.so"],
        cwd=folder, check=True,
    )  # fmt: skip
    library = ctypes.cdll.LoadLibrary(str(folder / "handlers.so"))
    for name in NAMES:
        for m in (ffi, jax.ffi):
            m.register_ffi_target(name, m.pycapsule(getattr(library, name)), platform="cpu")
    return library


def scaled(m, x, **options):
    results = (m.module.ShapeDtypeStruct(x.shape, np.float32), m.module.ShapeDtypeStruct((), np.int32))
    method = options.pop("vmap_method", None)
    call = m.module.ffi.ffi_call("scaled", results, vmap_method=method)
    return tuple(call(x, **{**OPTIONS, **options}))


def same(program):
    with lamina.config.log(frozenset()):
        assert_same(program(LAMINA), program(JAX))


def test_attributes_of_all_kinds():
    same(lambda m: scaled(m, X))
    same(lambda m: m.jit(lambda x: scaled(m, x + 1, negate=False))(X))
    same(lambda m: m.jit(lambda x: m.lax.scan(lambda c, _: (scaled(m, c)[0], c), x, None, length=3))(X))


@pytest.mark.parametrize("method", [
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
])  # fmt: skip
def test_batches(method):
    same(lambda m: m.vmap(lambda x: scaled(m, x, vmap_method=method)[0], in_axes=1)(X))


@pytest.mark.parametrize("dtype", [
    "bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn",
])  # fmt: skip
def test_layouts_and_dtypes(dtype):
    x = np.asarray(jnp.asarray(X).astype(dtype))

    def program(m, **layouts):
        call = m.module.ffi.ffi_call("memory", m.module.ShapeDtypeStruct(X.shape, x.dtype), **layouts)
        return m.jit(call)(x)

    same(program)
    same(lambda m: program(m, input_layouts=[(1, 0)]))
    same(lambda m: program(m, input_layouts=[(1, 0)], output_layouts=(1, 0)))


def test_results_in_the_memory_of_operands():
    def program(m):
        call = m.module.ffi.ffi_call(
            "add_to", m.module.ShapeDtypeStruct(X.shape, X.dtype), input_output_aliases={0: 0}
        )
        return m.jit(lambda x: (call(x), x))(X)

    same(program)
    with pytest.raises(ValueError, match="operand 0 is f32.2,3., but result 0 is f32.2."):
        shape = lamina.ShapeDtypeStruct((2,), X.dtype)
        ffi.ffi_call("add_to", shape, input_output_aliases={0: 0})(X)


def test_attributes_in_attributes():
    def program(m):
        shape = m.module.ShapeDtypeStruct((), np.float32)
        return m.module.ffi.ffi_call("nested", shape)(options={"value": np.float32(2.5)})

    same(program)


def test_jaxprs_show_the_target():
    shape = lamina.ShapeDtypeStruct((), np.float32)
    text = str(lamina.make_jaxpr(lambda: ffi.ffi_call("scratch", shape)())())
    assert "call=<scratch at 0x" in text  # the address keeps it off the disk


def test_rules_of_lowering():
    from lamina.extend.core import Primitive
    from lamina.interpreters import mlir

    bytes_p = Primitive("bytes_of")
    bytes_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(bytes_p, ffi.ffi_lowering("memory", operand_layouts=[(0, 1)]))
    assert lamina.jit(bytes_p.bind)(X).tolist() == X.T.reshape(2, 3).tolist()
    with pytest.raises(NotImplementedError, match="operand_layouts and result_layouts alone"):
        ffi.ffi_lowering("memory", backend_config="x")


def test_errors_of_handlers_and_of_calls(handlers):
    shape = lamina.ShapeDtypeStruct((), np.float32)
    for wrap in (lambda f: f, lamina.jit):
        with pytest.raises(lamina.errors.JaxRuntimeError, match="INVALID_ARGUMENT: mode must be plain, not x"):
            wrap(lambda x: scaled(LAMINA, x, mode="x"))(X)[0].block_until_ready()
        with pytest.raises(lamina.errors.JaxRuntimeError, match="no FFI target 'absent' is registered"):
            wrap(lambda: ffi.ffi_call("absent", shape)())()
        with pytest.raises(lamina.errors.JaxRuntimeError, match="lamina has no DeviceMemory_Allocate|no memory"):
            wrap(lambda: ffi.ffi_call("scratch", shape)())().block_until_ready()
    with pytest.raises(lamina.errors.JaxRuntimeError, match="Failed to decode|Wrong"):
        ffi.ffi_call("nested", shape)(options=3).block_until_ready()
    with pytest.raises(ValueError, match="The FFI call to `scaled` cannot be differentiated"):
        lamina.grad(lambda x: scaled(LAMINA, x)[0].sum())(X)
    with pytest.raises(NotImplementedError, match="FFI call to `scaled` needs a vmap_method"):
        lamina.vmap(lambda x: scaled(LAMINA, x))(X)
    with pytest.raises(lamina.errors.JaxRuntimeError, match="attribute 'options' of an FFI call is <object"):
        ffi.ffi_call("nested", shape)(options=object())


def test_programs_of_jax_call_what_is_registered_with_jax():
    from support.oracle.jax_programs import compiled, options, run

    from lamina.jax_plugin.compiler import deserialize_program

    program = compiled(lambda x: scaled(JAX, x), X)
    for one in (program, deserialize_program(program.serialize(), options())):
        for got, want in zip(run(one, [X]), scaled(JAX, X), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_handlers_that_promise_a_result():
    shape = lamina.ShapeDtypeStruct(X.shape, np.float32)
    later = ffi.ffi_call("later", shape)
    np.testing.assert_array_equal(lamina.jit(lambda x: later(x, fails=False) + 1)(X), 2 * X + 1)
    with pytest.raises(lamina.errors.JaxRuntimeError, match="INTERNAL: later it failed"):
        later(X, fails=True).block_until_ready()


def test_what_cannot_be_registered(handlers):
    capsule = ffi.pycapsule(handlers.memory)
    ffi.register_ffi_target("memory", {"execute": capsule})  # the same once more
    ffi.register_ffi_target("memory", ffi.pycapsule(handlers.scaled), platform="CUDA")
    ffi.register_ffi_target_as_batch_partitionable("memory")
    with pytest.raises(ValueError, match="'memory' is registered already"):
        ffi.register_ffi_target("memory", ffi.pycapsule(handlers.scaled))
    with pytest.raises(TypeError, match="takes a PyCapsule"):
        ffi.register_ffi_target("other", handlers.memory)
    with pytest.raises(NotImplementedError, match="stage execute alone, got instantiate"):
        ffi.register_ffi_target("other", {"execute": capsule, "instantiate": capsule})
    for call in (
        lambda: ffi.register_ffi_target("other", capsule, api_version=0),
        lambda: ffi.register_ffi_type("t", None), lambda: ffi.register_ffi_type_id("t", None),
        lambda: ffi.build_ffi_lowering_function("memory"),
        lambda: ffi.ffi_call("memory", lamina.ShapeDtypeStruct((), np.float32), custom_call_api_version=2),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError):
            call()


def test_details_of_an_error_stay_within_the_struct_of_an_older_handler():
    from lamina.ffi import errors

    number = errors._new_error(3, b"wrong")
    words = (ctypes.c_size_t * 5)(32, 0, number, 0, 7)  # the last one belongs to the handler
    errors._details(ctypes.addressof(words))
    assert ctypes.string_at(words[3]) == b"wrong" and words[4] == 7
    with pytest.raises(lamina.errors.JaxRuntimeError, match="INVALID_ARGUMENT: wrong"):
        errors.take_error(number)
