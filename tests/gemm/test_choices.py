"""What the models of time choose for the shapes of bench/shapes.json: a change of a formula that should change no
choice shows here. After one that should, write the file anew: ``python tests/gemm/test_choices.py``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.gemm import kernels
from tilewright.gemm.choice.choose import fastest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "data" / "gemm_choices.json"
KERNELS = ("hopper_f16", "hopper_e4m3", "tensorop_f16", "tensorop_i8", "small_m_f16")
H200 = (132, 232448)


def choices(name: str) -> dict[str, str]:
    """The size and the shares that are chosen for each shape."""
    sets = json.loads((ROOT / "bench" / "shapes.json").read_text(encoding="utf-8"))["sets"]
    return {times(shape): choice(name, *shape) for shapes in sets.values() for shape in shapes}


def choice(name: str, m: int, n: int, k: int) -> str:
    entry, plan = fastest(kernels()[name], "auto", (m, n, k, 1), H200)
    config = entry.config
    words = [times(config.tile)]
    if name.startswith("hopper"):
        words.append(f"cluster {times((*config.cluster, config.cluster_k))}")
        words += [name for name in ("pingpong", "transposed") if getattr(config, name)]
        words.append(f"columns {config.epilogue_columns}")
    if plan is not None:
        words.append(f"shares {plan.sk_tiles} by {plan.sk_blocks}{' together' * plan.shared_reduction}")
    return " ".join(words)


def times(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


@pytest.mark.parametrize("name", KERNELS)
def test_choices_are_those_that_were_kept(name: str) -> None:
    assert choices(name) == json.loads(KEPT.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: choices(name) for name in KERNELS}, indent=0) + "\n", encoding="utf-8")
