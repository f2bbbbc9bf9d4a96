"""``tilewright layout``: expressions of the algebra, errors that point, pictures on request."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tilewright import layout as algebra
from tilewright.cli.expression import FUNCTIONS, evaluate
from tilewright.errors import ParseError
from tilewright.layout import ComposedLayout, Layout, Swizzle


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(4,8):(13,1)", Layout((4, 8), (13, 1))),
        ("  8:2 ", Layout(8, 2)),
        ("(2,(3,_))", (2, (3, None))),
        ("Sw<3,3,3> o 0 o (8,64):(64,1)", ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))),
        ("composition((4,8):(13,1), 8:2)", Layout((2, 4), (26, 1))),
        ("size(complement(4:1, 24))", 6),
        ("composition( (4,8):(8,1) , (2:1,_) )", Layout((2, 8), (8, 1))),
        ("right_inverse((4,8):(8,1))(5)", 20),
        ("right_inverse((4,8):(8,1))(5)", 20),
        ("zipped_divide((8,16):(16,1),(4,8))((1,2),(0,1))", 26),
        ("make_layout((4,8), stride=(8,1))", Layout((4, 8), (8, 1))),
        ("make_composed_layout(make_swizzle(2,0,2),0,(4,4):(4,1))", evaluate("Sw<2,0,2> o 0 o (4,4):(4,1)")),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("composition((4,8):(13,1, 8:2)", 18, "profile of the shape"),
        ("compositon(8:1, 8:2)", 0, "did you mean composition"),
        ("size(coalesc(8:1))", 5, "did you mean coalesce"),
        ("composition((4,6):(6,1), 5:7)", 0, "not divisible"),
        ("size(3", 6, "expected , or )"),
        ("size(3 4)", 7, "cannot read ' 4'"),
        ("", 0, "expected a function or an operand"),
        ("size( )(3)", 0, "size does not take"),
        ("size(8:1)(3)", 9, "takes no coordinate"),
        ("(4,8", 4, "expected"),
        ("8:1, 9", 3, "nothing more was expected"),
        ("composition(5, 3)", 0, "5 is not a layout"),
        ("size(4:1, 3, 3, 3)", 0, "does not take (4:1, 3, 3, 3)"),
        ("__import__('os')", 1, "cannot read"),
        ("size(x)", 5, "expected a number"),
        ("print(3)", 0, "there is no function print"),
    ],
)
def test_errors_point_at_the_character(text: str, at: int, reason: str) -> None:
    with pytest.raises(ParseError, match=re.escape(reason)) as caught:
        evaluate(text)
    assert (caught.value.text, caught.value.position) == (text, at)


def test_every_function_offered_is_there() -> None:
    assert [name for name in FUNCTIONS if not callable(getattr(algebra, name, None))] == []


def test_a_layout_is_printed_summed_up_and_shown(command) -> None:
    done = command("layout", "composition((4,8):(13,1), 8:2)")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:2] == ["(2,4):(26,1)", "size 8, cosize 30"]
    assert [line.split() for line in lines[2:5]] == [list("0123"), list("00123"), ["1", "26", "27", "28", "29"]]


def test_a_large_layout_is_not_shown_and_a_number_is_just_printed(command) -> None:
    assert command("layout", "(100,100):(1,100)").out.splitlines() == ["(100,100):(1,100)", "size 10000, cosize 10000"]
    assert command("layout", "size(8:2)").out == "8\n"


def test_the_mark_stands_under_the_fault(command) -> None:
    done = command("layout", "size( ,8:1)")
    assert done.code == 2
    _, text, mark = done.err.splitlines()
    assert text == "  size( ,8:1)" and mark.index("^") == text.index(",")


def test_pictures(command, tmp_path) -> None:
    svg, tex = tmp_path / "a.svg", tmp_path / "a.tex"
    done = command("layout", "Sw<2,0,2> o 0 o (4,4):(4,1)", "--svg", svg, "--tex", tex)
    assert done.code == 0 and f"drawn into {svg}" in done.out
    assert svg.read_text().startswith("<svg") and r"\begin{tikzpicture}" in tex.read_text()
    assert "nothing to draw" in command("layout", "size(8:2)", "--svg", svg).complaint
    assert "must end in .svg" in command("layout", "8:2", "--svg", tmp_path / "a.png").complaint
    assert "cannot write" in command("layout", "8:2", "--svg", svg / "x.svg").complaint
