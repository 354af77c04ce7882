"""The scalar types float32, int8, ... : calling one makes an array, and each works as a dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from lamina.core.dtypes import extended as extended
from lamina.core.dtypes import prng_key as prng_key
from lamina.core.library import library


class ScalarType(type):
    """The class of lamina.numpy.float32 and its siblings."""

    dtype: np.dtype

    def __call__(cls, x: Any) -> Any:
        """x as an array of this dtype. OverflowError for a Python int out of range."""
        from lamina.numpy.creation import asarray

        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.dtype.type == other or _type_of(other) is cls.dtype.type

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class '{library}.numpy.{cls.__name__}'>"


def _type_of(other: object) -> Any:
    return other.type if isinstance(other, np.dtype) else None


def _scalar_type(name: str, source: Any) -> ScalarType:
    dtype = np.dtype(source)
    return ScalarType(name, (object,), {"dtype": dtype, "__module__": "lamina.numpy",
                                        "__doc__": f"Arrays of dtype {dtype.name}."})  # fmt: skip


bool_ = _scalar_type("bool", np.bool_)
int1 = _scalar_type("int1", ml_dtypes.int1)
int2 = _scalar_type("int2", ml_dtypes.int2)
int4 = _scalar_type("int4", ml_dtypes.int4)
int8 = _scalar_type("int8", np.int8)
int16 = _scalar_type("int16", np.int16)
int32 = _scalar_type("int32", np.int32)
int64 = _scalar_type("int64", np.int64)
uint1 = _scalar_type("uint1", ml_dtypes.uint1)
uint2 = _scalar_type("uint2", ml_dtypes.uint2)
uint4 = _scalar_type("uint4", ml_dtypes.uint4)
float4_e2m1fn = _scalar_type("float4_e2m1fn", ml_dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar_type("float6_e2m3fn", ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type("float6_e3m2fn", ml_dtypes.float6_e3m2fn)
uint8 = _scalar_type("uint8", np.uint8)
uint16 = _scalar_type("uint16", np.uint16)
uint32 = _scalar_type("uint32", np.uint32)
uint64 = _scalar_type("uint64", np.uint64)
float8_e3m4 = _scalar_type("float8_e3m4", ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar_type("float8_e4m3", ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type("float8_e4m3fn", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz)
float8_e8m0fnu = _scalar_type("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)
float8_e5m2 = _scalar_type("float8_e5m2", ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar_type("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz)
bfloat16 = _scalar_type("bfloat16", ml_dtypes.bfloat16)
float16 = _scalar_type("float16", np.float16)
float32 = single = _scalar_type("float32", np.float32)
float64 = double = _scalar_type("float64", np.float64)
complex64 = csingle = _scalar_type("complex64", np.complex64)
complex128 = cdouble = _scalar_type("complex128", np.complex128)
int_, uint, float_, complex_ = int64, uint64, float64, complex128

# NumPy's abstract categories, for issubdtype.
generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
