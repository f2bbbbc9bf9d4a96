"""Every keyword of every way into the library changes something, or is refused: none is taken and left unused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.gemm.test_modes import LOOPS
from tilewright import Float16, Float32
from tilewright.errors import ArgumentError, ConstraintError, TilewrightError
from tilewright.gemm import (
    Chain,
    GemmConfig,
    GemmUniversal,
    LinearCombination,
    Relu,
    SplitK,
    StreamK,
    cross_compile,
    gemm,
    gemm_grouped,
    kernels,
    launcher,
    matmul,
    stage,
)
from tilewright.gemm.host import plan as planning

pytestmark = pytest.mark.unchecked

rng = np.random.default_rng(0)
A, B, C, V = (rng.integers(-2, 3, s).astype(np.float16) for s in ((40, 264), (264, 72), (40, 72), (72,)))
ROWS, COLUMNS = np.arange(40)[::-1].astype(np.int32).copy(), np.arange(72)[::-1].astype(np.int32).copy()
FUNCTION = Chain((LinearCombination(Float32(1), Float32(0)), Relu()))
TILE = (64, 32, 64)
ONE_SIZE = LOOPS["hopper"]
SINGLES = A.astype(np.float32), B.astype(np.float32)


@functools.cache
def outcome(call: Callable[[], Any]) -> tuple[list[Any], Any]:
    """What was planned, and what came out: a result, or an error."""
    plans: list[Any] = []
    make = planning.Plan.of

    def of(*args: Any, **words: Any) -> Any:
        found = make(*args, **words)
        plans.append((found.entry.name, found.config, found.shares, found.dynamic, found.reduction))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planning.Plan, "of", of)
        try:
            found: Any = call()
        except TilewrightError as error:
            return plans, f"{type(error).__name__}: {error}"
    if isinstance(found, str | tuple | int):
        return plans, found
    result = np.asarray(getattr(found, "d", found))
    return plans, (getattr(found, "machine", None), result.dtype, result.astype(float).tolist())


def by_launcher(out: Any = None, c: Any = None, **words: Any) -> Any:
    d = np.zeros((40, 72), np.float16) if out is None else out
    launcher(A, B, d, c, **words)()
    return d


def by_handle(words: dict[str, Any], **arguments: Any) -> Any:
    d = np.zeros((40, 72), np.float16)
    handle, given = GemmUniversal(**words), GemmUniversal.Arguments(**({"A": A, "B": B, "D": d} | arguments))
    handle.initialize(given, np.zeros(handle.workspace_size(given) + 16, np.uint8))
    handle.run()
    return d


def by_group(**words: Any) -> Any:
    c = words.pop("c", None)
    found = gemm_grouped([(A, B) if c is None else (A, B, c)], **words)
    return np.array(
        [
            *found[0].ravel(),
            found.launches[0].tile[0],
            found.launches[0].kernel == "tensorop_f16",
            found.launches[0].decomposition == "stream_k",
        ]
    )


def reported(**words: Any) -> Any:
    seen: list[float] = []
    gemm(A, B, progress=seen.append if words else None)
    return len(seen)


def same(out: Any, call: Callable[..., Any]) -> Any:
    return out is not None and np.asarray(getattr(call(), "d", out)) is out and "there"


BETA: dict[str, Any] = {"c": C, "beta": 2.0}
KERNEL, SHARES, ATOMIC = {"kernel": "hopper_f16"}, {"decomposition": "stream_k"}, {"reduction": "atomic"}
HERE = {"kernel": ONE_SIZE}
Case = tuple[Callable[[], Any], Callable[[], Any]]
"""Without the keyword, and with it."""


def cases(call: Callable[..., Any], **changes: dict[str, Any]) -> dict[str, Case]:
    """For each keyword the call with ``changes[keyword]``, and without that keyword."""
    found: dict[str, Case] = {}
    for keyword, words in changes.items():
        rest = {k: v for k, v in words.items() if k != keyword}
        without = functools.partial(call, **rest) if rest else call  # ``call`` alone is called once for all keywords
        found[keyword] = without, functools.partial(call, **words)
    return found


COMMON: dict[str, dict[str, Any]] = {
    "c": BETA,
    "alpha": {"alpha": 3.0},
    "beta": {"c": C, "beta": 2.0},
    "kernel": KERNEL,
}
MADE = np.zeros((40, 72), np.float16)
PLAN = {"multiprocessors": 6, "occupancy": 1, "fragments": 2}


def streamk(problem: Any = (256, 256, 4096), tile: Any = (64, 64, 64), **words: Any) -> str:
    return repr(StreamK.of(problem, tile, **(PLAN | words)))


TABLE: dict[str, tuple[Callable[..., Any], dict[str, Case], tuple[str, ...]]] = {
    # the way in, its keywords, and those that are operands
    "gemm": (gemm, cases(
        lambda **words: gemm(A, B, **words), **COMMON, machine={"machine": "gpu"}, decomposition=SHARES | HERE,
        reduction=SHARES | ATOMIC | HERE, epilogue={"epilogue": FUNCTION}, check={"check": "no such check"},
    ) | cases(reported, progress={"progress": True}) | {
        "out": (lambda: "made", lambda: same(MADE, lambda: gemm(A, B, out=MADE))),
    }, ("a", "b")),
    "launcher": (launcher, cases(
        by_launcher, **COMMON, decomposition=SHARES | HERE, reduction=SHARES | ATOMIC | HERE,
        epilogue={"epilogue": FUNCTION},
    ), ("a", "b", "out")),
    "GemmUniversal": (GemmUniversal, cases(
        lambda **words: by_handle(words), kernel=KERNEL, decomposition=SHARES | HERE, reduction=SHARES | ATOMIC | HERE,
    ), ()),
    "Arguments": (GemmUniversal.Arguments, cases(
        lambda **words: by_handle({"kernel": "tensorop_f16", "decomposition": "stream_k"}, **words),
        C={"C": C, "beta": 2.0}, alpha={"alpha": 3.0}, beta={"C": C, "beta": 2.0}, mode={"mode": "batched"},
        batch_count={"batch_count": 2},
        epilogue={"epilogue": FUNCTION}, gather_A_indices={"gather_A_indices": ROWS},
        gather_B_indices={"gather_B_indices": COLUMNS}, scatter_D_indices={"scatter_D_indices": ROWS},
        avail_sms={"avail_sms": 3},
    ), ("A", "B", "D")),
    "matmul": (matmul, cases(
        lambda **words: matmul(A, B, **words), **COMMON, bias={"bias": V}, activation={"activation": "relu"},
        epilogue={"epilogue": Relu()},
        out_dtype={"out_dtype": "float32"}, decomposition=SHARES | HERE,
    ) | cases(lambda **words: matmul(*SINGLES, **words), precision={"precision": "tf32"}) | {
        "out": (lambda: "made", lambda: same(MADE, lambda: matmul(A, B, MADE))),
    }, ("a", "b")),
    "gemm_grouped": (gemm_grouped, cases(
        by_group, alpha={"alpha": 3.0}, beta={"c": C, "beta": 2.0}, bias={"bias": [V]},
        activation={"activation": "relu"}, kernel={"kernel": "tensorop_f16"},
        decomposition={"decomposition": "stream_k"},
    ) | {"out": (lambda: "made", lambda: gemm_grouped([(A, B)], [MADE])[0] is MADE and "there")}, ("problems",)),
    "stage": (stage, cases(
        lambda **words: str(stage(ONE_SIZE.config, **words)), decomposition=SHARES, reduction=SHARES | ATOMIC,
    ), ("config",)),
    "cross_compile": (cross_compile, cases(
        lambda **words: cross_compile(ONE_SIZE.config, "sm_90a", **words).cuda, decomposition=SHARES,
        reduction=SHARES | ATOMIC,
    ), ("config", "arch")),
    "StreamK.of": (StreamK.of, cases(
        streamk, multiprocessors={"multiprocessors": 5}, occupancy={"split": 8, "occupancy": 30},
        available={"available": 4},
        fragments={"split": 8, "occupancy": 30, "fragments": 3}, split={"split": 3}, batch={"batch": 2},
        shared={"shared": (3, 5)},
    ), ("problem", "tile")),
    "SplitK": (SplitK, cases(
        lambda **words: by_handle({"kernel": ONE_SIZE, "decomposition": SplitK(2, **words)}),
        mode={"mode": "parallel"},
    ), ("slices",)),
}  # fmt: skip


@pytest.mark.parametrize("way", TABLE)
def test_every_keyword_stands_in_the_table(way: str) -> None:
    function, keywords, operands = TABLE[way]
    assert set(inspect.signature(function).parameters) == {*keywords, *operands}


@pytest.mark.parametrize(("way", "keyword"), [(way, keyword) for way, row in TABLE.items() for keyword in row[1]])
def test_each_keyword_changes_the_call(way: str, keyword: str) -> None:
    without, given = TABLE[way][1][keyword]
    assert outcome(without) != outcome(given)


HOPPER = replace(ONE_SIZE.config, tile=(128, 64, 64), consumers=(2, 1), stages=4, epilogue_columns=32)
KINDS: dict[str, Any] = {
    "hopper": HOPPER,
    "one role": replace(HOPPER, roles="one"),
    "cluster": replace(HOPPER, cluster=(2, 1)),
    "pingpong": replace(HOPPER, tile=(64, 64, 64), pingpong=True),
    "cluster_k": replace(HOPPER, cluster_k=2, epilogue_columns=16),
    "tensorop": kernels()["tensorop_f16"].config,
    "simt": kernels()["simt_f32"].config,
    "small_m": kernels()["small_m_f16"].config,
}
OTHER = {
    "tile": (128, 128, 64),
    "stages": 3,
    "consumers": (1, 2),
    "cluster": (1, 2),
    "cluster_k": 4,
    "pingpong": True,
    "promote": 2,
    "roles": "one",
    "epilogue_columns": 16,
    "epilogue_buffers": 3,
    "group": 4,
    "raster": "hilbert",
    "warps": (1, 4),
    "granules": True,
    "acc_dtype": Float16,
}
OF_THE_HOST = ("transposed",)
"""The kernel is the same: the host gives it the transposed problem."""
BY_OPERAND = {("tensorop", "granules"): "rows that cp.async can copy need none"}
OPERANDS = ("math", "a", "b", "c", "block_scales")
"""What the operands and the scales of blocks decide: a size for others is refused."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_size_changes_its_kernel(kind: str) -> None:
    config = KINDS[kind]
    before = str(stage(config))
    names = {field.name for field in fields(config)}
    assert names <= {*OTHER, *OF_THE_HOST, *OPERANDS}
    for name in names & set(OTHER):
        if getattr(config, name) == OTHER[name] or (kind, name) in BY_OPERAND:
            continue
        changed = {name: (128, 64, 32) if name == "tile" and isinstance(config, GemmConfig) else OTHER[name]}
        try:
            after = str(stage(replace(config, **changed)))
        except (ArgumentError, ConstraintError):
            continue
        assert after != before, f"{kind}: {changed} changes nothing"


def pingpong() -> Any:
    size = replace(ONE_SIZE.config, tile=(64, 64, 64), consumers=(2, 1), pingpong=True)
    return ONE_SIZE.only(replace(size, epilogue_columns=32))


BATCH = {"A": np.stack([A, A]), "B": np.stack([B, B]), "D": np.stack([C, C]), "mode": "batched"}
PLANNED = StreamK.of((40, 72, 264), TILE, multiprocessors=6, occupancy=1, fragments=1, split=2)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"avail_sms, {how}": (
            lambda how=how: by_handle({"decomposition": how}, avail_sms=8),
            "over how many .*Stream-K",
        )
        for how in ("data_parallel", "dynamic", SplitK(2), SplitK(2, "parallel"), PLANNED)
    },
    "avail_sms, parallel": (lambda: by_handle({}, avail_sms=8, mode="gemm_split_k_parallel"), "over how many"),
    "avail_sms, batch": (lambda: by_handle({}, **BATCH, avail_sms=8), "for single products, not for a batch of 2"),
    "avail_sms, none": (lambda: by_handle({"reduction": "none"}, avail_sms=8), "reduction 'none' shares no tiles"),
    "one multiprocessor": (lambda: by_handle({"reduction": "mixed"}, avail_sms=1), "avail_sms = 1 shares no tile of"),
    "none, batch_count": (
        lambda: by_handle({"reduction": "none", "decomposition": "stream_k"}, batch_count=2),
        "which splits K: its parts are added up",
    ),
    "stream_k, pingpong": (lambda: gemm(A, B, kernel=pingpong(), decomposition="stream_k"), "take turns"),
    "stream_k, cluster_k": (
        lambda: gemm(A, B, kernel=ONE_SIZE.only(KINDS["cluster_k"]), decomposition="stream_k"),
        "share the k tiles of one tile already",
    ),
    "reduction, pingpong": (lambda: gemm(A, B, kernel=pingpong(), reduction="mixed"), "take turns"),
    "reduction, few rows": (
        lambda: gemm(A[:8], B.T.copy().T, kernel="small_m_f16", reduction="mixed"),
        "its blocks share nothing",
    ),
    "cluster, split-K": (
        lambda: gemm(A, B, kernel=ONE_SIZE.only(KINDS["cluster"]), decomposition=SplitK(2, "cluster")),
        r"operands in the cluster \(2, 1\) of this size",
    ),
    "none, cluster_k": (
        lambda: gemm(A, B, kernel=ONE_SIZE.only(KINDS["cluster_k"]), reduction="none"),
        "'none' with clusters that split K",
    ),
    "precision, float16": (lambda: matmul(A, B, precision="tf32"), "'tf32' is one of float32 arrays; a is Float16"),
    "precision, kernel": (lambda: matmul(*SINGLES, precision="tf32", kernel="simt_f32"), "beside kernel 'simt_f32'"),
    "alpha, epilogue": (lambda: gemm(A, B, alpha=2.0, epilogue=FUNCTION), "with an epilogue of your own"),
    "shared, split": (lambda: streamk(shared=(3, 5), split=2), "and split = 2: give one"),
    "shared, batch": (lambda: streamk(shared=(3, 5), batch=2), "and batch = 2, where none is: give one"),
    "stage, reduction": (lambda: stage(ONE_SIZE.config, "dynamic", "atomic"), "with 'dynamic' none do"),
    "stage, no reduction": (lambda: stage(ONE_SIZE.config, "stream_k", "sum"), "must be one of mixed, atomic, shared"),
    "stage, shared": (lambda: stage(KINDS["tensorop"], "stream_k", "shared"), "blocks that all run at once"),
    "stage, few rows": (lambda: stage(KINDS["small_m"], "stream_k"), "its blocks share nothing"),
    "stage, cluster_k": (lambda: stage(KINDS["cluster_k"], "stream_k"), "have no kernel for 'stream_k'"),
    "stages, few rows": (lambda: stage(replace(KINDS["small_m"], stages=4)), "would change nothing"),
    "granules, simt": (lambda: stage(replace(KINDS["simt"], granules=True)), "granules are a way of tensorop kernels"),
    "consumers, pingpong": (lambda: stage(replace(KINDS["pingpong"], consumers=(1, 2))), r"consumers \(2, 1\) wh"),
}


@pytest.mark.parametrize("together", REFUSED)
def test_keywords_without_effect_are_refused(together: str) -> None:
    call, message = REFUSED[together]
    with pytest.raises((ArgumentError, ConstraintError), match=message):
        call()


def test_update_keeps_to_the_plan() -> None:
    """Other parts of K, or other multiprocessors, want another plan."""
    d = np.zeros((40, 72), np.float16)
    handle, given = GemmUniversal("tensorop_f16", "stream_k"), {"A": A, "B": B, "D": d, "avail_sms": 8}
    arguments = GemmUniversal.Arguments(**given, batch_count=2)
    handle.initialize(arguments, np.zeros(handle.workspace_size(arguments) + 16, np.uint8))
    handle.update(replace(arguments, avail_sms=-1, alpha=2.0))
    for change in ({"batch_count": 3}, {"avail_sms": 5}, {"mode": "gemm_split_k_parallel"}):
        with pytest.raises(ArgumentError, match="wants? another plan: call initialize"):
            handle.update(replace(arguments, **change))
