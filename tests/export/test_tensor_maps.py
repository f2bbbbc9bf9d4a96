"""Tensor maps made in C: what the driver gets, the scales and the refusals are those of the template itself."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

from tests.export.harness import COMPILER, WARNINGS, needs_compiler
from tilewright.cuda.tensormaps import DATA_TYPE_CODES
from tilewright.errors import ArgumentError
from tilewright.export import source
from tilewright.export.host import template_text
from tilewright.ir.tensormap import Leaf, ModePart, TensorMapTemplate
from tilewright.ir.types import BF16, E4M3, F16, F32, I8, U64

PRELUDE = """
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#define TW_INVALID_VALUE 1
#define TW_TRY(CALL) do { const int32_t tw_failed = (CALL); if (tw_failed != 0) return tw_failed; } while (0)
static char tw_text[1024];
static int32_t tw_fail(int32_t code, const char *format, ...) {
  va_list given;
  va_start(given, format);
  vsnprintf(tw_text, sizeof tw_text, format, given);
  va_end(given);
  return code;
}
static int32_t tw_check(int code, const char *what) { (void)what; return code; }
static int encode(void *out, int kind, uint32_t rank, uint64_t address, const uint64_t *dims, const uint64_t *strides,
                  const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  uint32_t i;
  (void)out;
  printf("%d %" PRIu64 " %d %d %d %d |", kind, address, interleave, swizzle, l2, fill);
  for (i = 0; i < rank; ++i) printf(" %" PRIu64, dims[i]);
  printf(" |");
  for (i = 0; i + 1 < rank; ++i) printf(" %" PRIu64, strides[i]);
  printf(" |");
  for (i = 0; i < rank; ++i) printf(" %u:%u", box[i], steps[i]);
  printf(" |");
  return 0;
}
static struct {
  int (*TensorMapEncodeTiled)(void *, int, uint32_t, uint64_t, const uint64_t *, const uint64_t *, const uint32_t *,
                              const uint32_t *, int, int, int, int);
} tw_driver = {encode};
"""


def drawn(rng: random.Random) -> tuple[TensorMapTemplate, list[tuple[int, list[int]]]]:
    """A template, and launches of it: an address and the run-time numbers."""
    element = rng.choice([F16, BF16, F32, I8, E4M3, U64])
    kinds: list[str] = []  # of the run-time numbers

    def leaf(static: int, what: str) -> Leaf:
        if rng.random() < 0.5:
            return Leaf(static)
        kinds.append(what)
        return Leaf(0, len(kinds) - 1)

    modes: list[tuple[ModePart, ...]] = [(ModePart("mode 0", leaf(rng.choice([64, 100]), "extent"), Leaf(1), True),)]
    rank = rng.randint(1, 5)
    for i in range(1, rank):
        count = rng.choice([1, 1, 2, 3]) if i == rank - 1 else 1
        modes.append(
            tuple(
                ModePart(
                    f"mode ({i},{j})", leaf(rng.choice([1, 8]), "extent"), leaf(64 * rng.randint(1, 9), "stride"), False
                )
                for j in range(count)
            )
        )
    scales = modes[-1] if rank > 1 and len(modes[-1]) > 1 else ()
    template = TensorMapTemplate(
        "make_tiled_tma_atom", element, element, tuple(modes), (16,) * rank, rng.randrange(4), scales, "(?,?):(1,?)"
    )
    launches = []
    for _ in range(6):
        extent, stride = [1, 1, 2, 7, 130, 0, -2], [64, 128, 8192, 16, 8, 0, 24, -64, 1 << 38]
        numbers = [rng.choice(extent if kind == "extent" else stride) for kind in kinds]
        launches.append((rng.choice([0x1000, 0x7F0000000010, 0x1008]), numbers))
    launches.append((0x1000, [0 if kind == "stride" else 7 for kind in kinds]))  # broadcast
    return template, launches


def expected(template: TensorMapTemplate, address: int, numbers: list[int]) -> str:
    try:
        made, *scales = template.make(address, numbers)
    except ArgumentError:
        return "refused"
    kind = DATA_TYPE_CODES[template.element.tensor_map]
    parts: list[Any] = [
        [kind, address, 0, template.swizzle, 2, 0],
        made.dims,
        made.strides,
        [f"{b}:1" for b in made.box],
        scales,
    ]
    return " | ".join(" ".join(map(str, part)) for part in parts)


@needs_compiler
def test_tensor_maps(tmp_path: Path) -> None:
    rng = random.Random(0)
    tables, calls, wanted = [], [], []
    for i in range(150):
        template, launches = drawn(rng)
        tables.append(template_text(f"template{i}", template))
        for address, numbers in launches:
            values = ", ".join(f"INT64_C({n})" for n in numbers) or "0"
            calls.append(f"  {{ const int64_t v[] = {{{values}}}; show(&template{i}, {address}u, v); }}")
            wanted.append(expected(template, address, numbers))
    show = """
static void show(const tw_template *t, uint64_t address, const int64_t *values) {
  tw_tensor_map map;
  int64_t scales[8];
  int i;
  if (tw_encode(&map, t, address, values, scales)) {
    puts("refused");
    return;
  }
  for (i = 0; i < t->scales; ++i) printf(" %" PRId64, scales[i]);
  puts("");
}
"""
    text = [PRELUDE, source.piece("tensormap.c"), *tables, show, "int main(void) {", *calls, "  return 0;", "}"]
    (tmp_path / "maps.c").write_text("\n".join(text))
    assert COMPILER
    command = [COMPILER, "-std=c99", *WARNINGS, "maps.c", "-o", "maps"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    found = subprocess.run([str(tmp_path / "maps")], capture_output=True, text=True, check=True).stdout.splitlines()
    assert 100 < wanted.count("refused") < len(wanted) - 200
    for got, want in zip(found, wanted, strict=True):
        assert got.split() == want.split()
