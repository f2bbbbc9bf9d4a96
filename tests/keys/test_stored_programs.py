"""Staged programs that are kept on the disk: what names them, what is read, and what is never kept."""

from __future__ import annotations

import enum
import gc
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, cute, disk_cache
from tilewright.cuda import compiler, emit, machine
from tilewright.gemm import gemm, kernels
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.epilogue.functions import LinearCombination
from tilewright.gemm.family.compile import stage
from tilewright.gemm.host import handle
from tilewright.lang.launch import collector, specialise, stored
from tilewright.lang.launch.collector import put_aside, without_collector
from tilewright.lang.launch.options import CompileOptions
from tilewright.lang.launch.stage import stage as stage_program
from tilewright.lang.launch.stored import SWITCH, described, name_of
from tilewright.lang.staging.objects import StaticKey


class Frozen:
    """Python's collector, but that ``count`` objects are frozen, and none are when it is asked to."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)

    def get_freeze_count(self) -> int:
        return self.count

    def freeze(self) -> None:
        self.calls.append("freeze")

    def unfreeze(self) -> None:
        self.calls.append("unfreeze")


@pytest.fixture(autouse=True)
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty cache, and no program of an earlier test. What earlier tests left is frozen (``tests/conftest.py``): to
    count it takes seconds, to unfreeze it more, so nothing is put aside."""
    monkeypatch.setattr(collector, "gc", Frozen(1))
    monkeypatch.setenv(SWITCH, "1")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CACHE_MB", raising=False)
    monkeypatch.setattr(handle, "_COMPILED", {})
    yield
    stored.sources.cache_clear()


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that are staged from now on."""
    found: list[Any] = []

    def spy(*args: Any) -> Any:
        found.append(stage_program(*args))
        return found[-1]

    monkeypatch.setattr(specialise, "stage", spy)
    return found


def product(**how: Any) -> Any:
    """A @ B of small integers, which any order of adding gives exactly."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 96), (96, 64)))
    found = np.zeros((64, 64), np.float16)
    gemm(a, b, out=found, **{"kernel": "tensorop_f16", **how})
    assert np.array_equal(found, a.astype(np.float64) @ b)
    return found


def forget() -> None:
    """As a new process begins."""
    handle._COMPILED.clear()


# -- reading and writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"kernel": "hopper_f16"}, {"decomposition": "stream_k"}], ids=str)
def test_a_second_process_does_not_stage(staged: list[Any], how: dict[str, Any]) -> None:
    first = product(**how)
    assert len(staged) == 1
    forget()
    assert np.array_equal(product(**how), first)
    assert len(staged) == 1


def test_a_damaged_entry_is_staged_anew(staged: list[Any], tmp_path: Path) -> None:
    product()
    (entry,) = disk_cache.folder().iterdir()
    data = bytearray(entry.read_bytes())
    data[-1] ^= 1
    entry.write_bytes(data)
    forget()
    product()
    assert len(staged) == 2


@pytest.mark.parametrize("variable", [SWITCH, "TILEWRIGHT_CACHE_MB"])
def test_stored_programs_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, staged: list[Any], tmp_path: Path, variable: str
) -> None:
    monkeypatch.setenv(variable, "0")
    product()
    forget()
    product()
    assert len(staged) == 2
    assert not list(tmp_path.rglob("*.bin"))


class Doubled(LinearCombination):
    """An epilogue function of a user's."""


def test_programs_with_a_users_functions_are_staged_in_each_process(staged: list[Any], tmp_path: Path) -> None:
    product(epilogue=Doubled(Float32(1), Float32(0)))
    assert len(staged) == 1
    assert not list(tmp_path.rglob("*.bin"))


def test_programs_that_cannot_be_written_are_not_kept(tmp_path: Path, staged: list[Any]) -> None:
    product()
    stored.keep("0" * 64, staged[0].host, lambda: None)  # a function has no pickle
    assert not list(tmp_path.rglob("0" * 64 + ".bin"))


def test_programs_compiled_with_options_are_not_taken(monkeypatch: pytest.MonkeyPatch, staged: list[Any]) -> None:
    product()
    forget()
    monkeypatch.setenv("CUTE_DSL_LINEINFO", "1")
    product()
    assert len(staged) == 2


def test_compiled_functions_are_not_taken_for_each_other(staged: list[Any], tmp_path: Path) -> None:
    """They have no key, and nothing of them is kept."""

    def of(factor: int) -> Any:
        @cute.jit
        def host(x: cute.Tensor) -> cutlass.Int32:
            return cutlass.Int32(factor)

        return host

    x = np.zeros(4, np.float32)
    assert [cute.compile(of(factor), x)(x) for factor in (3, 5)] == [3, 5]
    assert len(staged) == 2 and not list(tmp_path.rglob("*.bin"))


# -- names -------------------------------------------------------------------------------------------------------------

CONFIG = kernels()["tensorop_f16"].config
OTHER_MAJOR = Major.MN if CONFIG.b.major is Major.K else Major.K
KEY = (type(CONFIG), CONFIG, StaticKey((1, "K")), (False,), True)
OTHER_KEYS = {
    "class": (Operand, *KEY[1:]),
    "a field": (KEY[0], replace(CONFIG, stages=CONFIG.stages + 1), *KEY[2:]),
    "a type": (KEY[0], replace(CONFIG, a=replace(CONFIG.a, dtype=Float32)), *KEY[2:]),
    "a member of an enumeration": (
        KEY[0],
        replace(CONFIG, b=replace(CONFIG.b, major=OTHER_MAJOR)),
        *KEY[2:],
    ),
    "a static value": (*KEY[:2], StaticKey((1, "M")), *KEY[3:]),
    "a literal's type": (*KEY[:2], StaticKey((1.0, "K")), *KEY[3:]),
    "truth": (*KEY[:3], (True,), KEY[4]),
    "nesting": (*KEY[:3], False, KEY[4]),
    "the last": (*KEY[:4], False),
    "length": KEY[:4],
}


@pytest.mark.parametrize("name", OTHER_KEYS)
def test_stored_name_contains_each_part_of_the_key(name: str) -> None:
    found = name_of(KEY)
    assert found is not None
    assert found == name_of(KEY) != name_of(OTHER_KEYS[name])


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True), (None, "None"), ("a", b"a"), ((1,), [1]), ({1: 2}, {2: 1})])
def test_values_that_python_may_take_for_equal_are_told_apart(pair: tuple[Any, Any]) -> None:
    assert described(pair[0]) != described(pair[1])


class Colour(enum.Enum):
    RED = 1


@dataclass
class Record:
    x: int = 0


@pytest.mark.parametrize("value", [Colour.RED, Record(), Record, np.ones(2), lambda: 0, object()])
def test_a_key_with_objects_of_others_has_no_name(value: Any) -> None:
    assert name_of((KEY, (value,))) is None


def test_the_environment_is_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = name_of(KEY)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "/elsewhere")
    assert name_of(KEY) == before
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    assert name_of(KEY) != before


def a_byte_more(root: Path) -> None:
    (root / "b.py").write_text("x = 12\n")


def other_bytes(root: Path) -> None:
    (root / "b.py").write_text("y = 1\n")


def another_file(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "b.py").rename(root / "folder/b.py")


@pytest.mark.parametrize("change", [a_byte_more, other_bytes, another_file])
def test_stored_name_contains_each_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    monkeypatch.setattr(stored, "STARTED", 1 << 62)
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").write_text("x = 1\n")
    names = []
    for act in (lambda _: None, change):
        act(tmp_path)
        stored.sources.cache_clear()
        names.append(name_of(KEY))
    assert names[0] != names[1]


def test_edited_sources_are_not_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The process runs the source as it was: its programs are not those of the new text."""
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("")
    stored.sources.cache_clear()
    assert name_of(KEY) is None
    os.utime(tmp_path / "a.py", ns=(0, stored.STARTED))
    assert name_of(KEY) is not None


# -- what is read is what was staged -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simt_f32", "tensorop_i8", "hopper_f16", "hopper_e4m3"])
def test_a_kernel_that_was_read_prints_as_the_one_that_was_staged(name: str) -> None:
    kernel = stage(kernels()[name].config)
    read = pickle.loads(pickle.dumps(kernel, 5))
    assert str(read) == str(kernel)
    assert emit(read, "sm_90a") == emit(kernel, "sm_90a")  # lines of the source included


def test_machine_code_is_found_by_digest_and_its_texts_are_written_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = stage(kernels()["simt_f32"].config)
    kernel.digest = "digest"
    made = compiler.compile(kernel)
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "emit", None)
        found = compiler.compile(kernel)
        assert found.cached
        assert (found.cubin, found.name) == (made.cubin, made.name)
        kernel.digest = "another"
        with pytest.raises(TypeError):
            compiler.compile(kernel)
    assert found.cuda == emit(kernel, "sm_90a").text
    assert found.ir == str(kernel)


def test_kernels_of_one_program_have_digests_of_their_own(staged: list[Any]) -> None:
    product()
    forget()
    (first,) = stored.kernels_of(staged[0].host)
    assert first.digest.endswith(".0")


@pytest.mark.parametrize("ran", [True, False])
def test_the_collector_waits_and_goes_on(ran: bool) -> None:
    """Also where a program fails, and one is made while another is."""
    before = gc.isenabled()
    try:
        (gc.enable if ran else gc.disable)()
        with pytest.raises(KeyError), without_collector():
            with without_collector():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == ran
    finally:
        (gc.enable if before else gc.disable)()


def test_doubts_of_a_kernel_are_told_by_the_process_that_stages_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    monkeypatch.setattr(machine, "_tell_of_doubts", lambda function: looked.append(function.known))
    for _ in range(2):
        monkeypatch.setattr(handle, "_COMPILED", {})
        product()
        (made,) = handle._COMPILED.values()
        assert machine.artifact(made.kernels[0], CompileOptions()).cubin
    assert looked == [False]


@pytest.mark.parametrize(("count", "calls"), [(0, ["freeze", "unfreeze"]), (3, [])])
def test_what_a_user_froze_stays_frozen(count: int, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = Frozen(count)
    monkeypatch.setattr(collector, "gc", frozen)
    put_aside()
    assert frozen.calls == calls
