"""The tabs of layouts and of swizzles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import tilewright.layout as algebra
from tilewright.errors import LayoutError, TilewrightError
from tilewright.explorer.answer import Answer, Field, FieldError, Form, Tab
from tilewright.explorer.expression import NAME, evaluate, operation, parts
from tilewright.layout import ComposedLayout, Layout, Swizzle, bank_conflicts, format_tree, size, solve_swizzle
from tilewright.viz import (
    Figure,
    bank_figure,
    complement_figure,
    composition_figure,
    divide_figure,
    figure_of,
    layout_figure,
    product_figure,
    swizzle_bits_figure,
    swizzle_figure,
)

OPERATIONS: dict[str, Callable[..., Figure]] = {
    "composition": composition_figure,
    "complement": complement_figure,
    "zipped_divide": divide_figure,
    **{name: partial(product_figure, product_of=getattr(algebra, name)) for name in dir(algebra) if "_product" in name},
}
"""Operations with a picture of their own, by name."""
COLOURS = ("offset", "index", "row", "column")
DESIGN = "design"
LARGE = 2048  # elements from which a layout is drawn as a heat map


def layouts(form: Form) -> Answer:
    """Every layout in the expression, drawn; the steps of its outermost operation."""
    done = Answer(python=f'tilewright layout "{form["expression"]}" --explain')
    with form.at("expression"):
        layouts_by_text = dict(parts(form["expression"]))  # a part that stands twice is drawn once
        for text, value in layouts_by_text.items():
            shown = format_tree(value) if isinstance(value, tuple) else str(value)
            title = shown if shown == text else f"{text} = {shown}"
            if isinstance(value, Layout | ComposedLayout) and value.is_static():
                large = isinstance(value, Layout) and size(value) > LARGE
                plain = isinstance(value, Layout) and form["colour"] != "offset"
                show = "colour" if large else "offset"
                drawn = layout_figure(value, color_by=form["colour"], show=show) if plain or large else figure_of(value)
                done.pictures.append((title, drawn))
            elif text != shown:
                done.texts.append((text, shown))
    name, operands = operation(form["expression"])
    if name in OPERATIONS:
        try:
            done.pictures.insert(0, ("what goes where", OPERATIONS[name](*operands)))
        except TilewrightError:
            pass  # the result has a picture all the same
    if NAME.match(form["expression"]):
        try:
            done.texts.append(("step by step", str(evaluate(form["expression"], explain=True))))
        except LayoutError:
            pass  # there are operations without an explanation
    return done


def swizzles(form: Form) -> Answer:
    """A tile in shared memory before and after a swizzle: offsets, banks, and the wavefronts of an access."""
    tile, access = form.layout("tile", Layout), form.layout("access", Layout)
    bits, vector = form.number("element_bits", 1, 128), form.number("vector", 1, 128)
    if len(access) != 2:
        raise FieldError("access", f"{access} has no two modes: it maps (thread, value) to the index in the tile")
    done = Answer()
    with form.at("access"):
        plain = bank_conflicts(tile, access, bits, vector)
        if form["swizzle"] == DESIGN:
            solution = solve_swizzle(tile, [(access, vector)], bits)
            swizzle = solution.swizzle
            done.texts.append(("the design and its proof", str(solution)))
        else:
            swizzle = _swizzle(form)
        swizzled = ComposedLayout(swizzle, 0, tile)
        after = bank_conflicts(swizzled, access, bits, vector)
        done.texts.append(("wavefronts", f"without the swizzle: {plain}\nwith {swizzle}: {after}"))
        done.pictures.append(("banks", bank_figure(swizzled, bits, vector=vector, access=access)))
    with form.at("offset"):
        offset = form.number("offset", 0)
        done.pictures.append(("the bits of an offset", swizzle_bits_figure(swizzle, offset)))
    done.pictures.append(("offsets", swizzle_figure(swizzled)))
    done.python = (
        "from tilewright.layout import bank_conflicts, parse\nfrom tilewright.viz import bank_figure\n\n"
        f'tile, access = parse("{swizzled}"), parse("{access}")\n'
        f"print(bank_conflicts(tile, access, {bits}, {vector}))\n"
        f'bank_figure(tile, {bits}, vector={vector}, access=access).save("banks.svg")\n'
    )
    return done


def _swizzle(form: Form) -> Swizzle:
    value = form.expression("swizzle")
    if not isinstance(value, Swizzle):
        raise FieldError("swizzle", f"{value} is not a swizzle, such as Sw<3,3,3>, nor the word {DESIGN}")
    return value


LAYOUTS = Tab(
    "layouts",
    "Layouts",
    "An expression of the layout algebra, with every layout on the way.",
    (
        Field(
            "expression",
            "Expression in CuTe notation",
            "composition((6,2):(8,2), (4,3):(3,1))",
            (
                "zipped_divide((8,16):(16,1), (4,8))",
                "logical_product((2,2):(1,2), (3,2))",
                "complement(4:2, 24)",
                "right_inverse((4,8):(8,1))",
                "coalesce((2,(1,6)):(1,(6,2)))",
                "Sw<2,0,3> o 0 o (8,8):(8,1)",
            ),
            open=True,
        ),
        Field("colour", "Colour", "offset", COLOURS),
    ),
    layouts,
)
SWIZZLE = Tab(
    "swizzle",
    "Swizzle",
    "Bank conflicts of a tile in shared memory, before and after a swizzle.",
    (
        Field("tile", "Tile", "(8,64):(64,1)"),
        Field("swizzle", "Swizzle, or design", DESIGN, (DESIGN, "Sw<3,3,3>", "Sw<2,3,3>", "Sw<1,3,3>"), open=True),
        Field("element_bits", "Bits of an element", "16", ("8", "16", "32", "64")),
        Field("vector", "Elements of an access", "8", ("1", "2", "4", "8", "16")),
        Field("access", "Access: (thread, value) to index", "(8,8):(1,8)", ("(8,8):(1,8)", "(8,8):(64,8)"), open=True),
        Field("offset", "Offset whose bits are shown", "72"),
    ),
    swizzles,
)
