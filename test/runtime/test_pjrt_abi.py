"""Our header of PJRT's C interface beside what the package pypjrt states of XLA's."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from pypjrt._abi import pjrt_0_114 as theirs

_PJRT = Path(__file__).parents[2] / "runtime" / "src" / "pjrt"

# Structs that are no function's arguments: theirs and ours.
_OTHERS = {
    "PJRT_NamedValue": "NamedValue",
    "PJRT_Buffer_MemoryLayout": "MemoryLayout",
    "PJRT_Buffer_MemoryLayout_Tiled": "MemoryLayout::Tiled",
    "PJRT_Buffer_MemoryLayout_Strides": "MemoryLayout::Strides",
    "PJRT_Program": "Program",
    "PJRT_ExecuteOptions": "ExecuteOptions",
    "PJRT_LogicalDeviceIds": "LogicalDeviceIds",
    "PJRT_Extension_Base": "ExtensionBase",
    "PJRT_Layouts_MemoryLayout_Destroy_Args": "Layouts_MemoryLayout_DestroyArgs",
    "PJRT_Layouts_MemoryLayout_Serialize_Args": "Layouts_MemoryLayout_SerializeArgs",
    "PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args": "Layouts_Client_GetDefaultLayoutArgs",
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args": "Layouts_Buffer_MemoryLayoutArgs",
    "PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args": "Layouts_Topology_GetDefaultLayoutArgs",
    "PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args": "Layouts_Executable_GetOutputLayoutsArgs",
    "PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args": (
        "Layouts_Executable_GetParameterLayoutsArgs"
    ),
    "PJRT_Shardings_PJRT_Executable_ParameterShardings_Args": (
        "Shardings_Executable_ParameterShardingsArgs"
    ),
    "PJRT_Shardings_PJRT_Executable_OutputShardings_Args": "Shardings_Executable_OutputShardingsArgs",
    "PJRT_FFI_Type_Register_Args": "Ffi_Type_RegisterArgs",
    "PJRT_FFI_Register_Handler_Args": "Ffi_Register_HandlerArgs",
} | {
    f"PLUGIN_Profiler_{name}_Args": f"Profiler_{name}Args"
    for name in (
        "Error_Destroy", "Error_Message", "Error_GetCode", "Create", "Destroy", "Start", "Stop",
        "CollectData",
    )
}  # fmt: skip


def _header() -> str:
    return (_PJRT / "abi.h").read_text()


def _asserts(their_name: str, our_name: str) -> list[str]:
    struct = getattr(theirs, their_name)
    rows = [f"static_assert(sizeof({our_name}) == {ctypes.sizeof(struct)});"]
    for name, *_ in struct._fields_:
        offset = getattr(struct, name).offset
        if not name.startswith("_anon"):
            rows.append(f"static_assert(offsetof({our_name}, {name}) == {offset});")
    return rows


def test_structs_have_the_offsets_of_xla(tmp_path):
    header = _header()
    pairs = dict(_OTHERS)
    for function in theirs.FUNCTIONS:
        short = function.removeprefix("PJRT_")
        if f"struct {short}Args : Args" in header:
            pairs[f"{function}_Args"] = f"{short}Args"
    assert len(pairs) > 110
    rows = [row for pair in pairs.items() for row in _asserts(*pair)]
    # Where the table of functions begins, and how many there are.
    rows.append(f"static_assert(offsetof(Api, functions) == {theirs.VTABLE_OFFSET});")
    # The table of a profiler's functions, of which ours has the first.
    api = theirs.PLUGIN_Profiler_Api
    rows += [
        f"static_assert(offsetof(ProfilerApi, {name}) == {getattr(api, name).offset});"
        for name, *_ in api._fields_[:10]
    ]
    rows.append(f"static_assert(sizeof(ProfilerApi) == {api.consume.offset});")
    profiler = theirs.PJRT_Profiler_Extension
    rows.append(f"static_assert(offsetof(ProfilerExtension, profiler_api) == {profiler.profiler_api.offset});")
    rows.append(f"static_assert(sizeof(ProfilerExtension) == {ctypes.sizeof(profiler)});")
    rows.append(f"static_assert(kFunctions == {len(theirs.SLOT)});")
    rows.append(f"static_assert(kMinorVersion == {theirs.PJRT_API_MINOR});")
    source = tmp_path / "offsets.cpp"
    text = "\n".join(rows)
    source.write_text(f'#include "{_PJRT / "abi.h"}"\nnamespace lamina::pjrt {{\n{text}\n}}\n')
    command = ["g++", "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("ours", "their_prefix"),
    [
        ("ErrorCode", "PJRT_Error_Code_"),
        ("BufferType", "PJRT_Buffer_Type_"),
        ("HostBufferSemantics", "PJRT_HostBufferSemantics_"),
    ],
)
def test_enumerators_have_the_values_of_xla(ours, their_prefix):
    header = _header()
    body = header[header.index(f"enum class {ours} ") :].split("};")[0]
    rows = [line.strip(" ,").split(" = ") for line in body.splitlines() if " = " in line]
    known = {
        name.removeprefix(their_prefix).lower().replace("_", "").removeprefix("k"): value
        for name, value in vars(theirs).items()
        if name.startswith(their_prefix)
    }
    assert {name.lower().removeprefix("k"): int(value) for name, value in rows} == known


def test_functions_stand_in_the_order_of_xla():
    table = (_PJRT / "functions.h").read_text()
    names = [
        line.split("(")[1].split(")")[0].split(",")[0]
        for line in table.splitlines()
        if line.startswith(("  IMPLEMENTED(", "  MISSING("))
    ]
    assert names == [function.removeprefix("PJRT_") for function in theirs.FUNCTIONS]


def test_the_stablehlo_version_is_that_of_our_mlir():
    from lamina.dialects.vendors import stablehlo_ext

    cmake = (_PJRT.parents[2] / "CMakeLists.txt").read_text()
    version = cmake.split("LAMINA_STABLEHLO_VERSION=")[1].split(")")[0]
    assert version.replace(",", ".") == stablehlo_ext.get_current_version()
