"""The explorer's tabs: what they answer, and where they say that a text is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tilewright.atoms.tcgen05_names import EXAMPLES
from tilewright.explorer.kernel_tab import NAMES, program
from tilewright.explorer.tabs import MODULES, described, respond, tab_of
from tilewright.layout import Layout, size, solve_swizzle


def ask(tab: str, **texts: str) -> dict[str, Any]:
    return json.loads(respond(json.dumps({"tab": tab, "texts": texts})))


@pytest.mark.parametrize("tab", [*MODULES])
def test_first_answer_of_each_tab_has_pictures(tab: str) -> None:
    found = ask(tab)
    assert found["pictures"] or found["sources"]
    for picture in found["pictures"]:
        assert ElementTree.fromstring(picture["svg"]).tag.endswith("svg")
    for one in described():
        assert {entry["name"] for entry in one["fields"]} == {entry.name for entry in tab_of(one["name"]).fields}


def test_the_browser_gets_the_same_answers_without_numpy() -> None:
    what = ("tiled MMA", "retile")
    asked: list[tuple[str, dict[str, str]]] = [*((tab, {}) for tab in MODULES)]
    atoms = (*EXAMPLES, "SM100_TMEM_LOAD_16x256b2x", "SM100_UTCCP_4x32dp128bit_1cta")
    asked += [*(("threads", {"what": "one instruction", "atom": atom}) for atom in atoms)]
    asked += [*(("threads", {"what": one}) for one in what), *(("kernel", {"program": program(one)}) for one in NAMES)]
    code = """
import json, sys
from tilewright.explorer import stand_in
stand_in.install()
from tilewright.explorer.tabs import respond
import numpy
try:
    numpy.zeros(3)
except RuntimeError as error:
    assert "needs NumPy" in str(error)
else:
    raise AssertionError("an array was made")
respond(json.dumps({"tab": "layouts", "texts": {}}))
early = [name for name in sys.modules if name.startswith(("tilewright.sim.", "tilewright.gemm.", "tilewright.lang."))]
assert not early, f"the first picture waits for {early}"
json.dump([json.loads(respond(json.dumps({"tab": tab, "texts": texts}))) for tab, texts in %r], sys.stdout)
"""
    done = subprocess.run([sys.executable, "-c", code % (asked,)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [ask(tab, **texts) for tab, texts in asked]


@pytest.mark.parametrize(
    ("tab", "texts"),
    [
        ("swizzle", {}),
        ("tma", {}),
        ("threads", {"what": "tiled MMA"}),
        ("threads", {"atom": "SM90_64x64x16_F32F16F16_RS<K,K>"}),
        ("threads", {"what": "tiled MMA", "atom": EXAMPLES[0], "atoms": "1:0", "permutation": "(128,64,16)"}),
        ("threads", {"what": "tiled copy", "atom": "UniversalCopy<uint128_t>"}),
        ("threads", {"what": "retile"}),
        ("threads", {"what": "retile", "operand": "B", "thread": "37"}),
    ],
)
def test_the_python_that_is_copied_runs(tab: str, texts: dict[str, str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = ask(tab, **texts)
    exec(found["python"], {})
    drawn = next(tmp_path.glob("*.svg")).read_text(encoding="utf-8")
    assert drawn == found["pictures"][0]["svg"]


def test_the_command_that_is_copied_runs(command: Any) -> None:
    import shlex

    for tab in ("layouts", "streamk"):
        name, *arguments = shlex.split(ask(tab)["python"])
        assert name == "tilewright" and command(*arguments).code == 0


def test_every_layout_on_the_way_is_drawn() -> None:
    found = ask("layouts", expression="size(coalesce(composition((4,8):(13,1), 8:2)))")
    assert [picture["title"] for picture in found["pictures"]] == [
        "(4,8):(13,1)",
        "8:2",
        "composition((4,8):(13,1), 8:2) = (2,4):(26,1)",
        "coalesce(composition((4,8):(13,1), 8:2)) = (2,4):(26,1)",
    ]
    assert found["texts"] == [{"title": "size(coalesce(composition((4,8):(13,1), 8:2)))", "text": "8"}]


@pytest.mark.parametrize(
    ("expression", "drawn"),
    [
        ("composition((6,2):(8,2), (4,3):(3,1))", "the element of A that B picks"),
        ("complement((2,2):(1,6), 24)", "(copy, element of A)"),
        ("zipped_divide((8,16):(16,1), (4,8))", "colour: the tile"),
        ("raked_product((2,2):(2,1), (2,3):(1,2))", "copies = (2,3):(1,2)"),
        ("coalesce(composition((6,2):(8,2), (4,3):(3,1)))", ""),
        ("composition((6,2):(8,2), (4,3):(3,1))(5)", ""),
    ],
)
def test_an_operation_has_a_picture_that_links_its_operands(expression: str, drawn: str) -> None:
    first = ask("layouts", expression=expression)["pictures"][0]
    assert (first["title"] == "what goes where") == bool(drawn) and drawn in first["svg"]


def test_the_designed_swizzle_is_free_of_conflicts() -> None:
    text = {one["title"]: one["text"] for one in ask("swizzle")["texts"]}
    assert text["the design and its proof"].startswith("Sw<3,3,3> o 0 o (8,64):(64,1)")
    assert "8 wavefronts" in text["wavefronts"].splitlines()[0]
    assert "with Sw<3,3,3>: 1 phases, 1 wavefronts (ideal 1), no conflict" in text["wavefronts"]
    given = ask("swizzle", swizzle="Sw<1,3,3>")
    assert "with Sw<1,3,3>: 1 phases, 4 wavefronts" in given["texts"][0]["text"]


def test_a_search_for_a_swizzle_asks_the_layout_once(monkeypatch: Any) -> None:
    asked = []
    offset_of = Layout.__call__
    monkeypatch.setattr(Layout, "__call__", lambda self, *at: asked.append(self) or offset_of(self, *at))
    tile, rows = Layout((8, 64), (64, 1)), Layout((8, 8), (1, 8))
    assert solve_swizzle(tile, [(rows, 8)], 16).tried > 10
    assert sum(one is tile for one in asked) == size(rows)


def test_tab_answer_for_one_thread() -> None:
    everything, one = ask("threads"), ask("threads", thread="5")
    in_cells = everything["pictures"][0]["svg"].count(">T5<")
    assert one["pictures"][0]["svg"].count(">T5<") == in_cells + 1 > 4  # and in the legend
    assert ">T6<" in everything["pictures"][0]["svg"] and ">T6<" not in one["pictures"][0]["svg"]


def test_the_numbers_of_a_plan() -> None:
    text = {one["title"]: one["text"] for one in ask("streamk")["texts"]}["the plan of Stream-K"]
    numbers = {line[:26].strip(): int(line[26:]) for line in text.splitlines()}
    assert numbers["output tiles"] == 9 and numbers["tiles by Stream-K"] == 9 and numbers["blocks that share them"] == 8
    assert numbers["k-iterations of a block"] * numbers["blocks that share them"] == 9 * 64


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_a_kernel_belong_together(name: str) -> None:
    found = ask("kernel", program=program(name))
    python, ir, cuda = found["sources"]
    assert "\n".join(text for text, _ in python["lines"]) == program(name).rstrip("\n")
    assert "__global__" in str(cuda["lines"]) and ir["lines"][0][0].startswith("kernel @")
    marked = {line for _, line in ir["lines"]} & {line for _, line in cuda["lines"]} - {0}
    assert len(marked) >= 3 and marked <= {line for _, line in python["lines"]}
    assert all("//" not in text for text, _ in ir["lines"])


def test_a_store_belongs_to_its_line() -> None:
    ir, cuda = ask("kernel")["sources"][1:]
    line = 1 + program("elementwise_add").splitlines().index("        c[i] = a[i] + b[i]")
    assert [text.strip() for text, number in ir["lines"] if number == line and "store" in text] == ["store %8, %7"]
    assert ["    c[i] = t + t_1;", line] in cuda["lines"]


ADD = program("elementwise_add")


@pytest.mark.parametrize(
    ("tab", "texts", "field", "position", "message"),
    [
        ("layouts", {"expression": "coalesce((4,8):(8,"}, "expression", 18, "expected a number"),
        ("layouts", {"expression": "coalesc(4)"}, "expression", 0, "did you mean coalesce"),
        ("layouts", {"colour": "red"}, "colour", -1, "one of offset"),
        ("swizzle", {"tile": "8"}, "tile", -1, "8 is not a static layout"),
        ("swizzle", {"swizzle": "Sw<3,3>"}, "swizzle", 6, "expected"),
        ("swizzle", {"swizzle": "4:1"}, "swizzle", -1, "not a swizzle"),
        ("swizzle", {"vector": "x"}, "vector", -1, "one of 1, 2"),
        ("swizzle", {"access": "8:1"}, "access", -1, "no two modes"),
        ("swizzle", {"access": "(8,8):(100,8)"}, "access", -1, "reaches element"),
        ("swizzle", {"offset": "-1"}, "offset", -1, "-1: it is 0"),
        ("threads", {"atom": "SM80_16x8x16_F32F16F16F32_NN"}, "atom", -1, "did you mean"),
        ("threads", {"thread": "x"}, "thread", -1, "not a whole number"),
        ("threads", {"what": "retile", "copy": "SM75_U32x4_LDSM"}, "copy", -1, "SM75_U32x4_LDSM"),
        ("threads", {"what": "retile", "thread": "500"}, "copy", -1, "no thread 500"),
        ("threads", {"what": "tiled copy"}, "atom", -1, "choose a tiled MMA"),
        ("threads", {"what": "tiled MMA", "permutation": "(17,32,16)"}, "permutation", -1, "not a multiple"),
        ("tma", {"box": "(16,128)"}, "box", -1, "a swizzle of 128 bytes permutes 128"),
        ("tma", {"box": "(16,)"}, "box", -1, "not a pair"),
        ("tma", {"at": "(0,3)"}, "box", -1, "not whole"),
        ("tma", {"tensor": "(100,70):(70,1)"}, "box", -1, "140"),
        ("tma", {"tensor": "(100,70):(70,2)"}, "box", -1, "contiguous mode"),
        ("streamk", {"tile": "128"}, "tile", -1, "MxNxK"),
        ("streamk", {"tile": "0x128x32"}, "tile", -1, "positive"),
        ("streamk", {"m": "0"}, "m", -1, "0: it is 1"),
        ("streamk", {"m": "99999", "n": "99999"}, "tile", -1, "take larger tiles"),
        ("kernel", {"program": "x = 1\nx ="}, "program", 2, "SyntaxError"),
        ("kernel", {"program": "import nothing_of_this_name"}, "program", 1, "ModuleNotFoundError"),
        ("kernel", {"program": "x = 1"}, "program", -1, "compiles no kernel"),
        ("kernel", {"program": ADD.replace("b[i]", "nope")}, "program", 10, "NameError"),
        ("kernel", {"program": ADD.replace("c[i] =", "c[i, 3] =")}, "program", 10, "(0,3)"),
    ],
)
def test_mistakes_name_their_place(tab: str, texts: dict[str, str], field: str, position: int, message: str) -> None:
    found = ask(tab, **texts)
    assert list(found) == ["error"]
    error = found["error"]
    assert (error["field"], error["position"]) == (field, position), error
    assert message in error["message"] and "/tmp" not in error["message"]


def test_pictures_as_tex() -> None:
    found = json.loads(respond(json.dumps({"tab": "layouts", "texts": {"expression": "(2,2):(2,1)"}, "tex": 0})))
    assert r"\begin{tikzpicture}" in found["tex"]


def test_a_large_layout_has_a_picture_of_bounded_size() -> None:
    small = ask("layouts", expression="(64,64):(64,1)")["pictures"][0]["svg"]
    assert small.count('class="c"') == 4096 and "colour: offset, from 0 (light)" in small
    assert "modulo" in ask("layouts", expression="(64,32):(32,1)")["pictures"][0]["svg"]
    found = ask("layouts", expression="(4096,4096):(4096,1)")
    assert size(Layout((4096, 4096))) == 1 << 24 and len(found["pictures"][0]["svg"]) < 2_100_000
