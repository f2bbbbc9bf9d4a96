"""The names that published programs use, by group: which of them are here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data"
GROUPS: dict[str, dict[str, int]] = {
    group: names for group, names in json.loads((DATA / "api_groups.json").read_text()).items() if group != "note"
}
WHOLE = tuple(GROUPS)


def find(path: str) -> Any:
    """The object of a dotted name; AttributeError or ImportError where there is none."""
    found: Any = importlib.import_module("tilewright")
    module = "tilewright"
    for part in path.split(".")[1:]:
        module += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(module)
    return found


def documented() -> dict[str, list[str]]:
    """The names of the CuTe DSL's public documentation, by the module or class that has them."""
    lines = (DATA / "documented_names.txt").read_text(encoding="utf-8").splitlines()
    split = [line.partition(": ") for line in lines if not line.startswith("#")]
    return {module.removesuffix("."): names.split() for module, _, names in split}


def documented_modules() -> list[str]:
    return [module for module in documented() if module and not module.rpartition(".")[2][:1].isupper()]


@pytest.mark.parametrize("module", ["", *documented_modules()])
def test_every_documented_name_can_be_imported(module: str) -> None:
    if module.startswith(("jax", "torch")):
        pytest.importorskip(module.partition(".")[0])
    for name in documented()[module]:
        find(f"cutlass.{module}.{name}".replace("..", "."))


def lacking(group: str) -> set[str]:
    gone = set()
    for name in GROUPS[group]:
        try:
            find(name)
        except (AttributeError, ImportError):
            gone.add(name)
    return gone


@pytest.mark.parametrize("group", WHOLE)
def test_the_names_of_a_group_are_here(group: str) -> None:
    if group == "tutorials":
        pytest.importorskip("jax")
    assert not lacking(group)


def test_the_check_can_fail() -> None:
    for name in (
        "cutlass.cute.nonsense",
        "cutlass.nonsense.cute",
        "cutlass.cute.nvgpu.tcgen05.CtaGroup.THREE",
        "cutlass.experimental.primitives.CTAGroup.CTA_3",
        "cutlass.cute.nvgpu.tcgen05.MmaF17",
    ):
        with pytest.raises((AttributeError, ImportError)):
            find(name)


def test_loads_as_documented() -> None:
    import numpy as np

    from tilewright import Float32, Int32, cute
    from tilewright.errors import TilewrightError
    from tilewright.lang.staging.ranges import HintWarning

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, ss: cute.typing.XTuple) -> None:
        out[0] = cute.arch.load(x.iterator, Int32)
        out[1] = cute.arch.load(x.iterator + 1, Float32, sem="acquire", scope="sys").to(Int32)
        out[2] = cute.arch.load(x.iterator, Int32, cop="cv", ss=ss)
        cute.arch.store(out.iterator + 3, Int32(7), sem="release", scope="gpu", level1_eviction_priority="evict_last")

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, ss: cute.typing.XTuple) -> None:
        kernel(x, out, ss).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x, out = np.array([1.0, 2.0], np.float32), np.zeros(4, np.int32)
    with pytest.warns(HintWarning, match=r"cache hints (cv|evict_last) are not followed"):
        host(x, out, None)
    assert out.tolist() == [x.view(np.int32)[0], 2, x.view(np.int32)[0], 7]
    with pytest.warns(HintWarning), pytest.raises(TilewrightError, match="not a pointer to shared memory"):
        host(x, out, "cta")


def test_floats_of_four_bits() -> None:
    import ml_dtypes
    import numpy as np

    from tilewright import Float4E2M1FN, cute, dtype

    assert (Float4E2M1FN.width, Float4E2M1FN.max, Float4E2M1FN.min) == (4, 6.0, -6.0) and Float4E2M1FN.is_float
    assert dtype(Float4E2M1FN) is Float4E2M1FN and cute.size_in_bytes(Float4E2M1FN, cute.make_layout((3, 5))) == 8
    for x in np.linspace(-8, 8, 129, dtype=np.float32):
        expected = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn)
        assert Float4E2M1FN(float(x)).value == float(expected)
    assert (Float4E2M1FN(1.5) + Float4E2M1FN(2.0)).value == 3.5
