"""Names that are documented and not here yet: they are imported, and their first use says why and what to use."""

from __future__ import annotations

import copy
import importlib
import inspect
import re

import numpy as np
import pytest

from tests.compat.test_names import GROUPS, find
from tilewright import cute, stand_ins
from tilewright.errors import ConstraintError, MissingNameError, TilewrightError
from tilewright.stand_ins import NotHereYet

NAMES = sorted({name for names in GROUPS.values() for name in names if not name.startswith("cutlass.jax")})  # no JAX
NOT_HERE = [name for name in NAMES if isinstance(find(name), NotHereYet)]


def test_stand_ins_are_listed() -> None:
    assert NOT_HERE


@pytest.mark.parametrize("name", NOT_HERE)
def test_stand_in_error_is_one_line_with_a_replacement(name: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        find(name)(1, width=2)
    text = str(caught.value)
    assert re.match(r"cutlass\.[\w.]+ is not here yet: ", text) and "\n" not in text
    assert re.search(r"\b([Uu]se|Tilewright has|Write|Allocate|Tilewright's kernels)\b", text), text


def test_replacements_named_by_stand_ins_exist() -> None:
    """Every `cute.x` and `utils.x` that a stand-in tells to use is there."""
    named = set()
    for name in NOT_HERE:
        named |= set(re.findall(r"\b(?:cute|utils|cutlass|cpasync)\.[\w.]*\w", find(name).why.partition(" ")[2]))
    assert named
    roots = {"cpasync": "cutlass.cute.nvgpu.cpasync", "cute": "cutlass.cute", "utils": "cutlass.utils"}
    for place in named:
        root, _, rest = place.partition(".")
        find(f"{roots.get(root, root)}.{rest}")


def test_stand_ins_in_annotations_and_base_classes() -> None:
    cutlass = importlib.import_module("tilewright")
    theirs = importlib.import_module("tilewright.cute.experimental")

    class Mine(theirs.TMAStorePipeline):
        def work(self, x: cutlass.GridConstant[theirs.TMAToUMMAPipeline] | None = None) -> cutlass.Float4E2M1FNx2:
            return x

    with pytest.raises(ConstraintError, match=r"experimental.TMAStorePipeline is not here yet: .*cutlass.pipeline"):
        Mine()
    kinds = theirs.OperationTypeEnum
    assert kinds.SM90_TMA_LOAD is kinds.SM90_TMA_LOAD != kinds.SM100_COPY_T2R
    with pytest.raises(MissingNameError, match=r"no attribute 'SM90_TMA_LOADS'; did you mean 'SM90_TMA_LOAD'"):
        kinds.SM90_TMA_LOADS  # noqa: B018  # an attribute that is not there


def test_stand_ins_behave_as_python_objects() -> None:
    cutlass = importlib.import_module("tilewright")
    cast = importlib.import_module("tilewright._mlir.dialects.cute").CastOp
    for stand_in in (cutlass.print_nd_vector, find("cutlass.cute.nvgpu.tcgen05.MmaF16BF16SparseOp"), cast):
        assert not hasattr(stand_in, "nonsense") and getattr(stand_in, "nonsense", None) is None
        assert not hasattr(stand_in, "_nonsense") and callable(stand_in) and isinstance(stand_in, type)
        assert list(inspect.signature(stand_in).parameters) == ["args", "kwargs"]
        assert copy.copy(stand_in) is stand_in
        with pytest.raises(MissingNameError, match=r"has no attribute 'nonsense'; cutlass.* is not here yet: "):
            stand_in.nonsense  # noqa: B018  # an attribute that is not there
        with pytest.raises(ConstraintError, match="is not here yet: "):
            stand_in()
    assert hasattr(find("cutlass.cute.experimental.TMAToUMMAPipeline"), "create")
    assert not hasattr(cutlass.experimental, "nonsense") and not hasattr(cutlass.experimental.cuda, "nonsense")


def test_stand_in_used_in_a_kernel_names_the_line() -> None:
    cutlass = importlib.import_module("tilewright")

    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        x[0] = cutlass.print_nd_vector(3)  # here

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    words = r"cutlass.print_nd_vector is not here yet: .*; use cute.print_tensor\n  at .*py:\d+"
    with pytest.raises(TilewrightError, match=words):
        host(np.zeros(1, np.float32))


def test_the_reason_of_a_module_is_that_of_its_names() -> None:
    assert find("cutlass.cute.nvgpu.tcgen05.MmaF16BF16SparseOp").why.startswith("the public documentation does not")
    assert find("cutlass.vector.broadcast_to").path == "cutlass.vector.broadcast_to"
    assert stand_ins.stand_in("cutlass.x", "y", ("A",)) is stand_ins.stand_in("cutlass.x", "y", ("A",))
