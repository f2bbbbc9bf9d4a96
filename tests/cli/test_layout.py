"""``tilewright layout``: expressions of the algebra, errors that point, pictures on request."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tilewright import layout as algebra
from tilewright.errors import ParseError
from tilewright.explorer.expression import FUNCTIONS, evaluate
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
        ("(4,8):(8,1)(1,2)", 10),
        ("4:3 (2)", 6),
        ("Sw<2,0,2> o 0 o (4,4):(4,1)((3,3))", 12),
        ("size((4,8):(8,1)(1,_))", 8),
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
        ("composition((4,8):(13,1, 8:2)", 18, "8:2 is neither an int nor a tuple"),
        ("compositon(8:1, 8:2)", 0, "did you mean composition"),
        ("size(coalesc(8:1))", 5, "did you mean coalesce"),
        ("composition((4,6):(6,1), 5:7)", 0, "not divisible"),
        ("size(3", 6, "expected , or )"),
        ("size(3 4)", 7, "cannot read ' 4'"),
        ("", 0, "expected a function or an operand"),
        ("size( )(3)", 0, "size does not take"),
        ("size(8:1)(3)", 9, "takes no coordinate"),
        ("(3,4)(1)", 5, "(3, 4) is not a layout"),
        ("(4,8):(8,1)(1,2,3)", 0, "1"),
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


OPERANDS = {  # of what takes no single layout
    "bank_conflicts": "(32,64):(64,1), (32,8):(1,32), 16, vector=8", "blocked_product": "(2,5):(5,1), (3,4):(1,3)",
    "ceil_div": "(9,8), (2,3)", "coalesce_shape": "(2,(3,4))", "coalescing": "(32,64):(64,1), (32,1):(32,0), 32",
    "compact_order": "(2,3,4), (2,0,1)", "complement": "4:2, 24", "composition": "(4,8):(13,1), 8:2",
    "crd2crd": "5, 8, (2,4)", "crd2idx": "(1,2), (4,8):(1,10)", "design_swizzle": "2, 8, 64",
    "dice": "(4,8):(1,4), (1,_)", "domain_distribute": "(15,14), 6", "domain_offset": "(1,2), (4,8):(1,4)",
    "downcast": "(2,4):(1,2), 4", "elem_less": "(3,(1,2)), (4,(2,3))", "flat_divide": "(16,8):(1,16), (4,2)",
    "flat_product": "(2,2):(1,2), (3,5):(1,3)",
    "get": "(4,8):(1,4), 1", "group_modes": "(2,3,5):(1,2,6), 0, 2", "idx2crd": "11, (4,(2,3))",
    "increment_coord": "(2,(0,1)), (3,(3,3))",
    "inner_partition": "(8,16):(16,1), (4,8), (1,0)", "is_compatible": "24, (4,6)", "is_congruent": "(2,3), (0,0)",
    "is_major": "1, (16,1)", "is_weakly_congruent": "(2,3), (2,(3,4))", "leading_dim": "(8,16), (16,1)",
    "local_partition": "(8,16):(16,1), (4,8):(8,1), 11", "local_tile": "(32,16):(16,1), (16,8), (1,_)",
    "logical_divide": "(4,2,3):(2,1,8), 4:2", "logical_product": "(2,2):(4,1), 6:1",
    "make_composed_layout": "Sw<2,1,2>, 128, (4,8):(1,4)", "make_identity_layout": "(4,(2,3))", "make_layout": "(4,8)",
    "make_layout_right": "(2,(3,4))", "make_layout_tv": "(4,8):(8,1), (1,4):(0,1)",
    "make_ordered_layout": "(8,16,3), (1,0,2)",
    "make_swizzle": "3, 4, 3", "max_common_layout": "(4,8):(1,4), (4,8):(1,10)",
    "max_common_vector": "(4,8):(1,4), (4,8):(1,4)", "outer_partition": "(8,16):(16,1), (4,8), (1,3)",
    "product": "(2,(3,4))", "product_each": "(2,(3,4))", "product_like": "((2,3),4), (0,0)",
    "raked_product": "(2,5):(5,1), (3,4):(1,3)", "recast_layout": "16, 8, (16,8):(1,16)", "repeat": "7, 3",
    "repeat_as_tuple": "7, 3", "repeat_like": "0, (1,(2,3))", "round_up": "(5,9), (4,4)",
    "select": "(4,8):(1,4), (1,0)",
    "shape_div": "12, (2,3)", "slice_": "(4,8):(1,4), (_,3)", "slice_and_offset": "(_,3), (4,8):(1,10)",
    "solve_swizzle": "(8,64):(64,1), (((8,8):(1,8),8)), 16", "swizzle_of_masks": "192, 6",
    "tile_to_shape": "(8,64):(64,1), (128,128), (0,1)", "tiled_divide": "(16,8):(1,16), (4,2)",
    "tiled_product": "2:1, (4,2):(1,4)", "tuple_cat": "(1,2), 3", "unflatten": "(1,2,3), (0,(0,0))",
    "upcast": "(8,4):(1,8), 4", "with_shape": "(8,4):(4,1), (2,4,4)",
    "zipped_divide": "(9,(4,8)):(59,(13,1)), (3:3,(2,4):(1,8))", "zipped_product": "(4,4):(1,4), (2:1,3:1)",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_operation_of_the_algebra(name: str) -> None:
    operands = OPERANDS.get(name, "(4,(2,8)):(1,(4,8))")
    expected = getattr(algebra, name)
    assert callable(expected) and name in algebra.__all__
    if not set("=<") & set(operands):
        given = algebra.parse(f"({operands})")
        assert str(evaluate(f"{name}({operands})")) == str(expected(*given))
    else:  # a keyword, or notation that does not stand inside a tuple
        assert str(evaluate(f"{name}({operands})")).startswith(("Sw<2,1,2> o 128", "4 phases, 32 wavefronts"))


def test_steps_instead_of_the_value(command) -> None:
    done = command("layout", "--explain", "composition((4,8):(13,1), 8:2)")
    assert done.code == 0 and "mode 8:2 of B" in done.out and "(2,4):(26,1)" in done.out.splitlines()
    assert "no explanation of rank" in command("layout", "--explain", "rank((4,8))").err


def test_a_layout_is_printed_summed_up_and_shown(command) -> None:
    done = command("layout", "composition((4,8):(13,1), 8:2)")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:2] == ["(2,4):(26,1)", "size 8, cosize 30"]
    assert [line.split() for line in lines[2:5]] == [list("0123"), list("00123"), ["1", "26", "27", "28", "29"]]


def test_a_large_layout_is_not_shown_and_a_number_is_just_printed(command) -> None:
    lines = command("layout", "(100,100):(1,100)").out.splitlines()
    assert lines[:2] == ["(100,100):(1,100)", "size 10000, cosize 10000"] and "--svg" in lines[2] and len(lines) == 3
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
    png = tmp_path / "a.png"
    assert command("layout", "8:2", "--svg", png).code == 0 and png.read_bytes().startswith(b"\x89PNG")
    assert "must end in .svg" in command("layout", "8:2", "--svg", tmp_path / "a.tex").complaint
    assert "cannot write" in command("layout", "8:2", "--svg", svg / "x.svg").complaint


def test_a_table_that_is_too_large_says_what_draws_it(command) -> None:
    done = command("layout", "Sw<3,3,3> o 0 o (8,64):(64,1)", "--explain")
    assert "--svg FILE.svg" in done.out
    assert "...yyyzzz..." in done.out and "the bits 6-8 (y)" in done.out and "the bits 3-5 (z)" in done.out
    assert "--svg" not in command("layout", "(4,8):(8,1)").out
