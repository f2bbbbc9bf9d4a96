"""Names that libraries of kernels take from beneath the CuTe DSL, and forms that they use them in."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, Int64, Uint32, cute, pipeline
from tilewright._mlir import ir
from tilewright._mlir.dialects import nvvm
from tilewright._mlir.extras import types as T
from tilewright._mlir_helpers import arith, math
from tilewright.base_dsl.settings import BaseDSL
from tilewright.compat import aliases
from tilewright.cute.runtime import from_dlpack, make_ptr, nullptr
from tilewright.errors import ArgumentError, ConstraintError, MissingNameError, StagingError
from tilewright.testing import per_thread


@pytest.mark.parametrize(
    "path",
    [
        "_mlir._mlir_libs",
        "_mlir.extras.types",
        "_mlir_helpers.op",
        "base_dsl._mlir_helpers.arith",
        "base_dsl._mlir_helpers.math",
        "base_dsl.ast_helpers",
        "base_dsl.ast_preprocessor",
        "cute.nvgpu.cpasync.copy",
        "cute.nvgpu.cpasync.helpers",
    ],
)
def test_modules_that_are_imported(path: str) -> None:
    assert importlib.import_module(f"tilewright.{path}")


def test_names_of_modules_that_are_imported() -> None:
    helpers = importlib.import_module("tilewright.base_dsl.ast_helpers")
    assert helpers.const_expr is cutlass.const_expr and helpers.range is cutlass.range
    assert importlib.import_module("tilewright._mlir_helpers.op").dsl_user_op is cutlass.dsl_user_op
    assert importlib.import_module("tilewright.cute.nvgpu.cpasync.helpers").TmaInfo is cute.nvgpu.cpasync.TmaInfo
    assert (T.i32(), T.vector(2, T.f16())) == (ir.T.i32(), ir.T.vector(2, ir.T.f16()))


def test_names_of_libraries_of_october() -> None:
    assert importlib.import_module("tilewright.cute.arch.numeric_conversion").popc is cute.arch.popc
    assert importlib.import_module("tilewright._mlir.dialects.cute").AddressSpace is cute.AddressSpace
    typing = importlib.import_module("tilewright.base_dsl.typing")
    assert typing.Pointer is cute.Pointer and isinstance(cutlass.Float32, typing.NumericMeta)
    executor = importlib.import_module("tilewright.base_dsl.ast_helpers").executor

    def smaller(t: Any) -> Any:
        return executor.ifexp_execute(t < 2, (t, 7), lambda x, y: x, lambda x, y: cutlass.Int32(y))

    assert per_thread(cute.jit(lambda t: smaller(t), preprocessor=False), 4) == [0, 1, 7, 7]
    with pytest.warns(UserWarning, match="once") as found:
        for _ in range(2):
            BaseDSL._get_dsl().print_warning_once("said once")
    assert len(found) == 1


def test_marked_functions_are_pickled_by_name() -> None:
    """Libraries make keys of their caches so."""
    assert pickle.loads(pickle.dumps((doubled, 3))) == (doubled, 3)


@cute.jit
def doubled(x: Any) -> Any:
    return 2 * x


def test_a_layout_with_stages_makes_a_tma_atom() -> None:
    """All stages are alike: the atom is that of one. The tile may be a layout, too, of as many modes."""

    @cute.jit
    def plans(a: cute.Tensor) -> None:
        one = cute.make_layout((8, 32), stride=(32, 1))
        staged = cute.make_layout((8, 32, 3), stride=(32, 1, 256))
        op = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        of_a = cute.composition(cute.make_identity_layout(a.shape), (8, 32))
        in_halves = cute.make_layout((8, 16, 2), stride=(32, 1, 16))  # all three modes are the tile
        forms = itertools.product((one, staged, in_halves), ((8, 32), of_a))
        made = [cute.nvgpu.cpasync.make_tiled_tma_atom(op, a, *form)[0].plan.smem for form in forms]
        found.append(all(cute.coalesce(smem) == cute.coalesce(made[0]) for smem in made))

    found: list[bool] = []
    cute.compile(plans, np.zeros((16, 64), np.float32))
    assert found == [True]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("base_dsl.ast_preprocessor", "DSLPreprocessor"),
        ("cute.experimental", "get_mbarrier"),
        ("base_dsl.dsl", "set_dynamic_debug"),
        ("cute.experimental", "OperationTypeEnum"),
        ("cute.nvgpu.cpasync.copy", "CopyBulkTensorTileS2GNonExecTrait"),
    ],
)
def test_stand_ins_are_objects_of_python(module: str, name: str) -> None:
    """They can be asked for attributes, get new ones, and be a base class; calling one says what to use."""
    found = getattr(importlib.import_module(f"tilewright.{module}".rstrip(".")), name)
    assert getattr(found, "y", None) is None and not hasattr(found, "_patched")
    assert inspect.signature(found)
    found._patched = True
    try:
        assert type("Mine", (found,), {"__module__": __name__, "path": "mine", "why": "", "members": ()})._patched
    finally:
        del found._patched
    with pytest.raises(ConstraintError, match=r"is not here yet: .*(Use|use|Write) "):
        found()
    with pytest.raises(MissingNameError):
        _ = found.y


def test_a_class_of_methods_that_are_replaced() -> None:
    preprocessor = importlib.import_module("tilewright.base_dsl.ast_preprocessor").DSLPreprocessor
    original = preprocessor.visit_If
    preprocessor.visit_If = lambda self, node: original(self, node)
    del preprocessor.visit_If
    assert preprocessor.visit_If is original


def test_the_bits_and_the_reciprocal() -> None:
    bits = per_thread(lambda t: cutlass.Int32(arith.bitcast(Float32(t).ir_value(), T.i32())), 4)
    assert bits == np.arange(4, dtype=np.float32).view(np.int32).tolist()
    assert per_thread(lambda t: math.rcp(Float32(t + 1), approx=True, ftz=True), 4, dtype=Float32)[1::2] == [0.5, 0.25]
    assert per_thread(lambda t: math.rcp(Float32(t + 1)), 4, dtype=Float32)[1::2] == [0.5, 0.25]
    with pytest.raises(ConstraintError, match="rcp is exact, or"):
        per_thread(lambda t: math.rcp(Float32(t + 1), ftz=True), 4, dtype=Float32)


@pytest.mark.parametrize(
    ("dtype", "bits"), [(cutlass.Int16, 16), (cutlass.Uint16, 16), (cutlass.Int32, 32), (Uint32, 32)]
)
def test_the_whole_product_of_two_integers(dtype: Any, bits: int) -> None:
    rng = np.random.default_rng(0)
    signed = dtype in (cutlass.Int16, cutlass.Int32)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    for a, b in [(low, low), (low, high - 1), (high - 1, high - 1), *rng.integers(low, high, (5, 2)).tolist()]:
        made = per_thread(
            lambda t, a=a, b=b: cute.arch.mul_wide(dtype(t * 0 + a), dtype(t * 0 + b)).to(Int64), 1, dtype=Int64
        )
        upper = per_thread(lambda t, a=a, b=b: cute.arch.mul_hi(dtype(t * 0 + a), dtype(t * 0 + b)), 1, dtype=dtype)
        assert upper == [a * b >> bits]
        assert made[0] % 2 ** (2 * bits) == a * b % 2 ** (2 * bits)
    for wrong in ((cutlass.Int32(1), Uint32(1)), (Int64(1), Int64(1)), (Float32(1), Float32(1))):
        with pytest.raises(ConstraintError, match="mul_wide takes two integers of one type"):
            cute.arch.mul_wide(*wrong)


def test_one_lane_of_a_warp_by_its_condition() -> None:
    def mark(t: Any, p: Any) -> Any:
        chosen = cutlass.Boolean(nvvm.elect_sync())
        cute.arch.store(p + t, cutlass.Int32(chosen))

    assert per_thread(mark, 64, memory=[0] * 64)[1] == [1, *[0] * 31, 1, *[0] * 31]
    assert per_thread(lambda t: cutlass.Int32(nvvm.elect_sync(membermask=0xFFFFFFFF)), 32)[:2] == [1, 0]
    with pytest.raises(ConstraintError, match="a lane of the whole warp"):
        per_thread(lambda t: cutlass.Int32(nvvm.elect_sync(membermask=1)), 32)


def test_the_prefix_of_a_host_function() -> None:
    @cute.jit
    def nothing(x: cute.Tensor) -> None:
        pass

    nothing.set_name_prefix("mine_")
    compiled = cute.compile(nothing, from_dlpack(np.zeros(4, np.float32)))
    assert "mine_nothing" in str(compiled.__mlir__)
    with pytest.raises(StagingError, match="letters, digits and _"):
        nothing.set_name_prefix("4 ")


def test_the_element_type_and_the_address_by_other_names() -> None:
    x = from_dlpack(np.zeros(4, np.float32))
    kinds = []

    @cute.kernel
    def look(x: cute.Tensor) -> None:
        kinds.extend((x._dtype, x.iterator.raw_ptr().value().type == x.iterator.llvm_ptr.type))

    @cute.jit
    def run(x: cute.Tensor) -> None:
        look(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    run(x)
    assert [*kinds, x._dtype] == [Float32, True, Float32]


@pytest.mark.parametrize("compiled_for", [cute.AddressSpace.gmem, cute.AddressSpace.generic])
def test_pointers_to_global_memory_and_without_a_memory_space_stand_for_each_other(compiled_for: Any) -> None:
    """Libraries compile with ``nullptr``, which is generic, and pass the pointer of a tensor, and the other way."""

    @cute.kernel
    def fill(p: cute.Pointer) -> None:
        cute.make_tensor(p, 4)[cute.arch.thread_idx()[0]] = Float32(3)

    @cute.jit
    def run(p: cute.Pointer) -> None:
        fill(p).launch(grid=(1, 1, 1), block=(4, 1, 1))

    compiled = cute.compile(run, nullptr(Float32, compiled_for, 16))
    for given in (cute.AddressSpace.gmem, cute.AddressSpace.generic):
        other = np.zeros(8, np.float32)
        compiled(make_ptr(Float32, other.ctypes.data, given, 16))
        assert other.tolist() == [3, 3, 3, 3, 0, 0, 0, 0]
        with pytest.raises(ArgumentError, match="align"):
            compiled(make_ptr(Float32, other.ctypes.data, given, 4))
    with pytest.raises(ArgumentError, match="Float16|f16"):
        compiled(make_ptr(cutlass.Float16, other.ctypes.data, assumed_align=16))
    with pytest.raises(ArgumentError, match="smem|shared"):
        compiled(make_ptr(Float32, 16, cute.AddressSpace.smem, 16))


def test_a_call_is_compiled_for_the_memory_space_of_its_pointer() -> None:
    """Of a function that is not compiled beforehand the space may choose the code, in calls of either order."""

    @cute.jit
    def fill(p: cute.Pointer) -> None:
        number = 1 if cutlass.const_expr(p.memspace == cute.AddressSpace.gmem) else 2
        cute.make_tensor(p, 4).fill(Float32(number))

    for given in (cute.AddressSpace.gmem, cute.AddressSpace.generic, cute.AddressSpace.gmem):
        x = np.zeros(4, np.float32)
        fill(make_ptr(Float32, x.ctypes.data, given, 4))
        assert x.tolist() == 4 * [1 if given == cute.AddressSpace.gmem else 2]


def test_a_state_of_no_stages_may_be_moved_on_where_it_is_never_read() -> None:
    """A loop carries it although no stage is used; its index, a remainder of 0, feeds only itself."""

    class Ahead(pipeline.PipelineState):
        def go(self, n: Any) -> None:
            self._count += n
            index = self._index + n
            self._phase ^= index // self.stages
            self._index = index % self.stages

        def __new_from_mlir_values__(self, values: Any) -> Any:
            return Ahead(self.stages, *map(cutlass.Int32, values))

    @cute.kernel
    def loop(x: cute.Tensor) -> None:
        state, n = Ahead(0, 0, 0, 0), x[0]
        while n > 0:
            state.go(2)
            x[1] += 1
            n -= 1

    @cute.jit
    def run(x: cute.Tensor) -> None:
        loop(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x = np.array([3, 0], np.int32)
    run(from_dlpack(x))
    assert x.tolist() == [3, 3]


def test_names_for_annotations_at_the_root() -> None:
    assert cutlass.Tensor is cute.Tensor and cutlass.Pointer is cute.Pointer and cutlass.Layout is cute.Layout


def test_errors_of_names_are_in_the_words_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the program says `import cutlass`, the name, whether a stand-in is there, and the line."""
    monkeypatch.setattr(aliases, "is_installed", lambda: True)
    here = rf"at {re.escape(__file__)}:\d+"
    with pytest.raises(
        AttributeError, match=rf"module 'cutlass.cute' has no .*'nonsense', nor a stand-in for it, {here}$"
    ):
        _ = cute.nonsense
    with pytest.raises(
        ImportError, match=rf"module 'cutlass.cute' has no attribute 'make_layuot', nor .*{here}; did you"
    ):
        exec(compile("from tilewright.cute import make_layuot", __file__, "exec"), {})
