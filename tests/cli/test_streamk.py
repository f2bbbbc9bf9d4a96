"""``tilewright streamk``: the comparison as the example program prints it, the pictures, and results that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tilewright.cli import main
from tilewright.gemm.operators import compare
from tilewright.gemm.schedule.blocks import Block, Piece, data_parallel, split_k, stream_k
from tilewright.gemm.schedule.gantt import EXCHANGE, WAIT, Costs, schedule
from tilewright.gemm.schedule.streamk import StreamK

ARGUMENTS = ["192", "192", "256", "--sms", "8", "--occupancy", "1", "--tile", "64x64x64", "--machine", "cpu"]
NAMES = [
    "Basic data-parallel GEMM",
    "StreamK GEMM with default load-balancing",
    "StreamK emulating basic data-parallel GEMM",
    "Basic split-K GEMM with tile-splitting factor 2",
    "StreamK emulating Split-K GEMM with tile-splitting factor 2",
]


def test_all_variants_pass_and_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "schedules.svg"
    assert main(["streamk", *ARGUMENTS, "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert [line for line in lines if line in NAMES] == NAMES
    assert text.count("Disposition: Passed") == 5 and "Failed" not in text
    assert text.count("Speedup vs Basic-DP: ") == 2 and text.count("Speedup vs Basic-SplitK: ") == 1
    drawn = [t.text for t in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert all(name in drawn for name in NAMES) and drawn.count("SM 7") == 5
    assert any("quantisation efficiency 56.2%" in (t or "") for t in drawn)


def test_a_split_leaves_split_k_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Also with scales, whose last bit may differ, and on the Hopper kernel."""
    more = ["--split", "3", "--alpha", "0.3", "--beta", "-1.7"]
    for kernel in ([], ["--kernel", "hopper_f16", "--tile", "128x64x64"]):
        assert main(["streamk", *ARGUMENTS, *more, *kernel]) == 0
        text = capsys.readouterr().out
        assert text.count("factor 3") == 2 and text.count("Disposition: Passed") == 2 == text.count("Disposition")
        assert text.count("Speedup vs Basic-SplitK: ") == 1


def test_a_wrong_result_is_said_and_ends_in_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    multiply = compare.gemm

    def wrong(*args: Any, **words: Any) -> Any:
        report = multiply(*args, **words)
        if isinstance(words["decomposition"], StreamK) and words["decomposition"].sk_regions > 1:
            report.d[5, 7] += np.float16(1)
        return report

    monkeypatch.setattr(compare, "gemm", wrong)
    assert main(["streamk", *ARGUMENTS]) == 1
    found = capsys.readouterr()
    assert found.out.count("Passed") == 4 and found.out.count("Failed") == 1
    assert "wrong results: StreamK emulating Split-K" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tile", "64x64"], "a tile is written MxNxK"),
        (["--kernel", "hopper_bf16"], "there is no kernel"),
        (["--kernel", "hopper_f16", "--tile", "64x64x32"], "kernel hopper_f16 has no size of tile (64, 64, 32) whose"),
        (["--picture", "x.bmp"], "must end in .svg"),
        (["--tile", "64x64x7"], "vectors"),
        (["--alpha", "nan"], "alpha is nan: a scale must be finite"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streamk", *ARGUMENTS, *words]) == 2
    assert message in capsys.readouterr().err


def covered(blocks: list[Block]) -> dict[int, list[int]]:
    """How often each k tile of each tile is multiplied."""
    seen: dict[int, list[int]] = {}
    for block in blocks:
        for piece in block.pieces:
            for k in range(piece.begin, piece.end):
                seen.setdefault(piece.tile, [0] * 64)[k] += 1
    return seen


@pytest.mark.parametrize("sms", [1, 4, 7, 8, 100])
@pytest.mark.parametrize("occupancy", [1, 2])
def test_schedules_do_all_work_once_and_wait_for_what_was_stored(sms: int, occupancy: int) -> None:
    def plan(**numbers: Any) -> StreamK:
        return StreamK.of(
            (384, 384, 2048), (128, 128, 32), multiprocessors=sms, occupancy=occupancy, fragments=8, **numbers
        )

    for blocks in (data_parallel(9, 64), split_k(9, 64, 3), *map(stream_k, (plan(), plan(split=5), plan(available=1)))):
        assert covered(blocks) == {tile: [1] * 64 for tile in range(9)}
        found = schedule(blocks, sms, occupancy, Costs(1.0, 3.0, 5.0))
        places: dict[tuple[int, int], list[Any]] = {}
        for span in found.spans:
            places.setdefault((span.sm, span.place), []).append(span)
        for spans in places.values():  # one thing at a time
            assert all(one.end <= other.start for one, other in zip(spans, spans[1:], strict=False))
        assert all(arrow.time <= arrow.to_time for arrow in found.arrows)
        stored = sum(span.kind == EXCHANGE and not span.k_tiles for span in found.spans)
        assert stored >= len({(a.block, a.tile) for a in found.arrows})
        assert found.time >= 9 * 64 / (sms * occupancy) and 0 < found.utilisation <= found.quantisation_efficiency <= 1


def test_waiting_is_seen() -> None:
    blocks = [Block("split-K", (Piece(0, 0, 8),)), Block("split-K", (Piece(0, 8, 9),))]
    found = schedule(blocks, 2, 1, Costs(1.0, 2.0, 4.0))
    (wait,) = [span for span in found.spans if span.kind == WAIT]
    assert (wait.start, wait.end, found.time) == (1.0, 10.0, 16.0)
