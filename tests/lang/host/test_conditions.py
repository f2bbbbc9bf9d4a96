"""Conditions of launches, options and remembered values, asked by themselves."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.lang.host.programs import arrays, scale, scale_kernel
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, StagingError
from tilewright.ir.core import Block, Op
from tilewright.lang.launch import options
from tilewright.lang.launch.dependencies import Dependencies
from tilewright.lang.launch.options import CompileOptions, of_environment, parse
from tilewright.lang.launch.stored import Undescribed, own_name


@pytest.mark.parametrize("dump", [None, "a"])
@pytest.mark.parametrize("older", [None, "b"])
def test_dump_folder_from_the_environment(dump: Any, older: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    artifact = SimpleNamespace(dump=lambda *given: written.append(given))
    monkeypatch.setattr(options, "import_module", lambda _: SimpleNamespace(artifact=lambda *_: artifact))
    for name, value in (("TILEWRIGHT_DUMP", dump), ("CUTE_DSL_DUMP_DIR", older)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    options.keep(CompileOptions(), [object()])
    assert not written
    options.keep(CompileOptions(keep_ptx=True, keep_sass=True), [object()])
    assert written == [(Path(dump or older or "."), ["ptx", "sass"])]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, []),
        ({"CUTE_DSL_KEEP": "ptx"}, ["keep_ptx"]),
        ({"CUTE_DSL_KEEP": "ptx, CUBIN"}, ["keep_ptx", "keep_cubin"]),
        ({"CUTE_DSL_KEEP": "all"}, ["keep_ptx", "keep_cubin", "keep_sass"]),
        ({"CUTE_DSL_KEEP": "ir"}, []),
        ({"CUTE_DSL_KEEP_PTX": "1"}, ["keep_ptx"]),
        ({"CUTE_DSL_KEEP_CUBIN": "yes"}, ["keep_cubin"]),
        ({"CUTE_DSL_KEEP_PTX": "0"}, []),
        ({"CUTE_DSL_LINEINFO": "1"}, ["generate_line_info"]),
        ({"CUTE_DSL_LINEINFO": "no"}, []),
    ],
    ids=str,
)
def test_compile_options_from_the_environment(given: Any, kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEEP", "KEEP_PTX", "KEEP_CUBIN", "KEEP_SASS", "LINEINFO"):
        monkeypatch.delenv(f"CUTE_DSL_{name}", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    base = CompileOptions()
    found = of_environment(base)
    assert found == CompileOptions(**dict.fromkeys(kept, True)) and (found is base) == (not kept)


def test_an_unknown_word_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DSL_KEEP", "ptx,sas")
    with pytest.raises(ArgumentError, match="CUTE_DSL_KEEP: 'sas' is not one of ptx, cubin, sass, all"):
        of_environment(CompileOptions())


def test_an_unknown_option_names_the_nearest_or_all() -> None:
    with pytest.raises(ArgumentError, match="unknown option '--opt-levl'.*opt-level") as near:
        parse(CompileOptions(), "--opt-levl 2")
    assert "--keep-ptx" not in str(near.value)
    with pytest.raises(ArgumentError, match="unknown option '--zzzzzz'; there are --opt-level, .*--keep-ptx"):
        parse(CompileOptions(), "--zzzzzz")


def test_conditions_of_the_simulator_stay_where_assertions_are_taken_out() -> None:
    inner, body = Block(), Block()
    inner.ops = [Op("assert", [], [], {}, [], None), Op("add", [], [], {}, [], None)]
    simulated = Op("assert", [], [], {"simulated": True}, [], None)
    body.ops = [simulated, Op("if", [], [], {}, [inner], None), Op("assert", [], [], {}, [], None)]
    functions: Any = [SimpleNamespace(body=body)]
    options.apply(CompileOptions(enable_assertions=True), functions)
    assert (len(body.ops), len(inner.ops)) == (3, 2)
    options.apply(CompileOptions(enable_assertions=False), functions)
    assert [op.opcode for op in body.ops] == ["assert", "if"] and body.ops[0] is simulated
    assert [op.opcode for op in inner.ops] == ["add"]


@pytest.mark.parametrize(
    "given", [{}, {"file_path": ".", "object_file_path": "a.o"}, {"object_file_path": "a.o", "file_name": "b"}], ids=str
)
def test_a_file_to_export_to_is_named_in_one_way(given: Any) -> None:
    with pytest.raises(ArgumentError, match="export_to_c: give file_path .and file_name., or object_file_path"):
        cute.compile(scale, *arrays()).export_to_c(**given)


def test_repr_of_compiled_functions() -> None:
    @cute.jit
    def nothing(n: cutlass.Int32) -> cutlass.Int32:
        return n + 1

    assert "(scale_kernel)" in repr(cute.compile(scale, *arrays()))
    assert "no kernels" in repr(cute.compile(nothing, 3))


@cute.kernel
def counted(x: cute.Tensor, n: cutlass.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    x[t] = n


def test_a_cluster_with_a_fallback_is_known_while_staging() -> None:
    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32) -> None:
        counted(x, n).launch(grid=(4, 1, 1), block=(32, 1, 1), cluster=(n, 1, 1), fallback_cluster=(1, 1, 1))

    with pytest.raises(StagingError, match="launch of counted: cluster must be known while staging where there is a"):
        host(np.zeros(32, np.int32), 2)


def test_a_kernels_argument_has_the_type_that_it_names() -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        counted(x, x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(StagingError, match="kernel argument 'n': expected a Int32, got"):
        host(np.zeros(32, np.int32))


def test_static_numbers_of_one_type_share_a_kernel() -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        for number in cutlass.range_constexpr(3):
            counted(x, cutlass.Int32(number)).launch(grid=(1, 1, 1), block=(32, 1, 1))

    compiled = cute.compile(host, np.zeros(32, np.int32))
    assert len(compiled.kernels) == 1
    x = np.zeros(32, np.int32)
    compiled(x)
    assert (x == 2).all()


class Turned:
    """Looks like the tensor that it shows, and stands for another."""

    def __init__(self, shown: Any, meant: Any) -> None:
        self.shown, self.meant = shown, meant

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shown, name)


@cutlass.register_jit_arg_adapter(Turned)
def meant_by(turned: Turned) -> Any:
    return from_dlpack(turned.meant)


def test_adapter_results_are_passed_in_each_call() -> None:
    torch = pytest.importorskip("torch")
    shown, meant, y = torch.zeros(64), torch.arange(64.0), torch.zeros(64)

    @cute.jit
    def host(x: Any, y: cute.Tensor, factor: cutlass.Float32) -> None:
        scale_kernel(x, y, factor, cute.size(y)).launch(grid=(1, 1, 1), block=(64, 1, 1))

    compiled = cute.compile(host, Turned(shown, meant), y, 1.0)
    for factor in (1.0, 2.0, 3.0):
        compiled(Turned(shown, meant), y, factor)
        assert torch.equal(y, factor * meant)


class Plain:
    shared = 1


settings = ModuleType("settings")
settings.number = 3


def test_attributes_of_the_users_modules_are_followed_and_of_no_library() -> None:
    def function() -> Any:
        return settings.number, np.float32, cutlass.Float32

    followed = Dependencies([function], []).holders()
    assert any(scope is vars(settings) for scope in followed)
    assert not any(scope is vars(module) for scope in followed for module in (np, cutlass))


def test_a_class_that_another_process_would_not_find_has_no_name() -> None:
    assert own_name(CompileOptions) == f"{CompileOptions.__module__}.CompileOptions"
    for module, name in (
        ("tilewright.lang.launch.options", "Lost"),
        ("tilewright.nowhere", "Lost"),
        (CompileOptions.__module__, "CompileOptions"),
        (__name__, "Plain"),
    ):
        lost = type(name, (), {"__module__": module})
        with pytest.raises(Undescribed):
            own_name(lost)
