"""Each component of the keys by which a product's launches are repeated, and by which groups share kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.keys.spy import Path, Spy, check, components
from tilewright import cute
from tilewright.gemm import gemm_grouped, grouped_matmul
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.operators import group_launch, launches, prepared
from tilewright.gemm.operators import repeated as repeats
from tilewright.gemm.operators.launches import CAPTURED, PreparedLaunch, Slot
from tilewright.gemm.operators.prepared import Prepared
from tilewright.gemm.operators.repeated import RepeatedProduct

torch = pytest.importorskip("torch")

# -- what stays prepared for a geometry --------------------------------------------------------------------------------

ADDRESSES = (0x1000, 0x2000, 0x3000, 0x4000, 0x5000)
"""Of A, B, C, D and the bias."""


class Code:
    """Host code of one launch that says what it is called with."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def body(self, kernels: Any, device: Any, *values: Any) -> None:
        self.log.append(values)

    def moving(self, device: str, values: list[Any], moved: Any, stream: Any, *_: Any) -> list[Any]:
        return [lambda stream, addresses: self.log.append((stream, values[0], *addresses))]


class Launch(NamedTuple):
    """A product that was prepared, launched on a stream at addresses."""

    stream: Any = 7
    addresses: tuple[int, ...] = ADDRESSES


def stand_in(log: list[Any], workspace: bool) -> Any:
    """A Prepared that binds steps which tell the stream whose workspace they have."""
    made = object.__new__(Prepared)
    made.device, made.number, made.workspace = "cuda:0", 0, workspace
    made.bindings, made.launches, made.moving = {}, {}, {}

    def bind(stream: Any) -> list[PreparedLaunch]:
        slots = [Slot(3 + i, i, 0, 64, 0) for i in range(5)]
        steps = [PreparedLaunch(Code(log), [None, None, f"workspace of {stream}", *[0] * 5], slots)]
        if stream is not CAPTURED:
            made.bindings[stream if workspace else 0] = steps
        return steps

    made.bind = bind
    return made


def launched(attribute: str, times: int, spy: Spy, *cases: Launch) -> list[Any]:
    """What reaches the GPU in ``times`` launches of each case."""
    log: list[Any] = []
    product = stand_in(log, workspace=True)
    setattr(product, attribute, spy)
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launches, "MOVING_AFTER", 1)
        for case in cases:
            patch.setattr(launches, "current_stream", lambda device, apart, case=case: case.stream)
            log.clear()
            for _ in range(times):
                product.launch(case.addresses)
            outcomes.append(list(log))
    return outcomes


def moved(operand: int) -> tuple[int, ...]:
    return tuple(address + 0x100 * (i == operand) for i, address in enumerate(ADDRESSES))


@pytest.mark.parametrize(("attribute", "times"), [("bindings", 1), ("launches", 2), ("moving", 4)])
def test_a_stream_tells_bindings_apart(attribute: str, times: int) -> None:
    needed = attribute != "launches"  # a number of launches decides only when they begin to move
    check(partial(launched, attribute, times), Launch(), Launch(stream=8), (), set(), needed)


@pytest.mark.parametrize("workspace", [False, True])
def test_repeated_launches_are_the_launches(workspace: bool) -> None:
    """The short cut against the plain way, for calls in any order; what a graph captures is never kept."""
    rng = np.random.default_rng(workspace)
    streams = [7, 8, CAPTURED] if workspace else [7, 8]
    log: list[Any] = []
    kept = stand_in(log, workspace)
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(200):
            stream, addresses = streams[rng.integers(len(streams))], moved(int(rng.integers(6)))
            patch.setattr(launches, "current_stream", lambda device, apart, stream=stream: stream)
            for product in (kept, stand_in(log, workspace)):
                log.clear()
                product.launch(addresses)
                found = log[0][-6:]
                assert found[1:] == addresses and (not workspace or found[0] == f"workspace of {stream}")
    assert kept.moving and CAPTURED not in {*kept.moving, *kept.bindings}


def repeated(shape: tuple[int, ...] = (4, 8)) -> RepeatedProduct:
    """A product whose operands take 64 bytes each from their addresses on."""
    return RepeatedProduct(SimpleNamespace(device="cpu"), shape, torch.float32, ((0, 64),) * 5, same=True)


def test_overlap_checks_are_remembered_by_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the plain rule, for addresses in any order; a few are kept."""
    monkeypatch.setattr(repeats, "MOST_ADDRESSES", 40)
    rng, product, answers = np.random.default_rng(0), repeated(), set()
    for _ in range(2000):
        a, b, c, d, bias = (64 * int(x) for x in rng.integers(0, 5, 5))
        addresses = a, b, d if rng.integers(2) else c, d, bias
        answer = repeated().results_are_disjoint(addresses)
        assert product.may_write(addresses) == answer
        answers.add(answer)
        assert len(product.disjoint) <= 40
    assert answers == {False, True}


@pytest.mark.parametrize("shape", [(), (3,), (4, 8), (2, 3, 5), (4, 0), (0, 4), (2, 0, 3)])
def test_a_new_result_is_what_new_empty_makes(shape: tuple[int, ...]) -> None:
    like = torch.empty(1)
    made, plain = repeated(shape).empty(), like.new_empty(shape, dtype=torch.float32)
    assert (made.shape, made.stride(), made.dtype) == (plain.shape, plain.stride(), plain.dtype)


def test_tensors_of_two_devices_have_keys_of_their_own() -> None:
    def tensor(device: int) -> Any:
        like = SimpleNamespace(dtype="f16", shape=(4, 8), stride=lambda: (8, 1), data_ptr=lambda: 0x1000)
        return SimpleNamespace(**vars(like), get_device=lambda: device, is_neg=lambda: False)

    first = repeats.torch_key(*[tensor(0)] * 5)
    for operand in range(5):
        other = repeats.torch_key(*(tensor(int(i == operand)) for i in range(5)))
        assert [i for i in range(5) if first[i] != other[i]] == [operand]


@pytest.mark.parametrize("part", range(3), ids=["device", "stream", "use"])
def test_a_workspace_is_of_one_device_stream_and_use(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product asks for its workspace with all three."""
    asked: list[Any] = []
    spaces = SimpleNamespace(zeros=lambda key, beside: asked.append(key) or (lambda n, dtype: None))
    monkeypatch.setattr(prepared, "WORKSPACES", spaces)
    monkeypatch.setattr(prepared, "zeros_apart", lambda target, D: None)
    monkeypatch.setattr(prepared, "machine_of", lambda device: None)
    monkeypatch.setattr(prepared.Handle, "of", lambda *given: SimpleNamespace(launches=lambda: []))
    for device, stream in (("cuda:0", 7), ("cuda:1", 7), ("cuda:0", 8)):
        made = object.__new__(Prepared)
        made.device, made.workspace, made.bindings, made.workspaces = device, True, {}, []
        made._problem, made._rows, made.function = SimpleNamespace(D=None), None, None
        made.plan = SimpleNamespace(packing=None, config=SimpleNamespace(transposed=False))
        made.bind(stream)
        made.workspace = False
        made.bind(stream)
        assert list(made.bindings) == [stream, 0]
    assert len(set(asked)) == 6 and len({key[part] for key in asked}) == 2


# -- kernels of groups -------------------------------------------------------------------------------------------------


class Group(NamedTuple):
    """A group of one product."""

    stages: int = 3
    activation: Any = None
    cut: str = ""
    """The mode that offsets cut."""
    how: str = "auto"

    def run(self) -> list[Any]:
        if self.cut:
            a, b = np.ones((7, 9), np.float16), np.ones((9, 7), np.float16)
            if self.cut == "m":
                b = b[None]
            return [grouped_matmul(a, b, np.array([4], np.int32), kernel="tensorop_f16").reshape(7, 7).tolist()]
        a = ((np.arange(8 * 32) % 7) - 3).reshape(8, 32).astype(np.float16)
        entry = KERNELS["tensorop_f16"]
        entry = entry.only(replace(entry.config, stages=self.stages))
        made = gemm_grouped(
            [(a, np.eye(32, 16, dtype=np.float16))], activation=self.activation, kernel=entry, decomposition=self.how
        )
        return [d.tolist() for d in made]


GROUPS = {
    (0,): ("configuration", Group(), Group(stages=2)),
    (1,): ("epilogue function", Group(activation="relu"), Group(activation="silu")),
    (2,): ("what fills the table", Group(cut="m"), Group(cut="k")),
    (3,): ("whether blocks share tiles", Group(), Group(how="stream_k")),
}
OTHERS = {
    (4,): "whether a stream is given: another number of arguments",
    (5,): "what users' functions read: tests/gemm/operators/test_epilogue_state.py",
}
_PROGRAMS: dict[Group, Any] = {}


def compiled_once(case: Group, *args: Any) -> Any:
    if case not in _PROGRAMS:
        _PROGRAMS[case] = cute.compile(*args)
    return _PROGRAMS[case]


def grouped(spy: Spy, *cases: Group) -> list[Any]:
    """What each group's product is, and the program that made it."""
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_launch, "_COMPILED", spy)
        for case in cases:
            compiling = SimpleNamespace(compile=partial(compiled_once, case), runtime=cute.runtime)
            patch.setattr(group_launch, "cute", compiling)
            outcomes.append((case.run(), str(spy[spy.asked[-1]].kernels)))
    return outcomes


@pytest.mark.parametrize("path", GROUPS, ids=[name for name, *_ in GROUPS.values()])
def test_key_of_group_kernels_has_each_component(path: Path) -> None:
    check(grouped, *GROUPS[path][1:], path, {()})


def test_every_component_of_a_groups_key_has_its_case() -> None:
    spy = Spy()
    grouped(spy, Group())
    assert {path for path, _ in components(spy.asked[0], {()})} == GROUPS.keys() | OTHERS.keys()
