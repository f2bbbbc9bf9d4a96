"""Pictures of tensors of the host program: the numbers in their places, coloured by size, offset or bank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.layout import Layout, idx2crd, is_static
from tilewright.viz.colour import BLANK, oklch
from tilewright.viz.colouring import ColorBy, ElementColours, ElementDescription, element_colours
from tilewright.viz.figure import Figure
from tilewright.viz.grids import AnyLayout
from tilewright.viz.layouts import panels_of, shown_indices, words_of
from tilewright.viz.panels import Legend

STEPS = 12  # shades from the smallest number to the largest
SHOWN = ("value", "offset", "index", "coordinate")


def tensor_figure(
    tensor: Any,
    *,
    show: str | Sequence[str] = "value",
    title: str | None = None,
    color_by: ColorBy = "value",
    flatten_hierarchical: bool = False,
) -> Figure:
    """Draw a tensor: mode 0 down, mode 1 across, a panel for each index of the modes after them.

    Args:
        tensor: a tensor in host memory (``from_dlpack``, or any array that has DLPack, such as NumPy's), a tiled or
            sliced one too; or a tensor of coordinates, as ``make_identity_tensor`` gives.
        show: what a cell shows: "value", "offset", "index", "coordinate", or several of them, a line each.
        title: instead of element type and layout.
        color_by: "value" (from the smallest to the largest that is drawn), "offset", "index", "row", "column", "bank",
            or a function of the offset that gives a number.
        flatten_hierarchical: see :func:`~tilewright.viz.layout_figure`.

    Raises:
        ArgumentError: not a tensor, one whose numbers are not known on the host, or an unknown option.

    >>> print(tensor_figure(np.eye(2, 3, dtype=np.float32)))
    Float32 (2,3):(3,1)
       0  1  2
    0  1  0  0
    1  0  1  0
       0 to 1
    """
    tensor = _tensor(tensor)
    layout = _layout(tensor)
    words = words_of(show, SHOWN)
    bits = getattr(getattr(tensor, "element_type", None), "width", None)
    values = {index: _number(tensor, layout, index) for index in shown_indices(layout)}
    colours, legend = _colours(color_by, values, bits)

    def word(index: int) -> str:
        return formatted(values[index])

    panels, notes = panels_of(layout, words, colours.of, flatten_hierarchical, word=word)
    if words != ("value",):
        notes = (*notes, f"in a cell: {', '.join(words)}")
    name = f"{getattr(tensor, 'element_type', '')} {layout}".strip() if bits else f"coordinates {layout}"
    return Figure(name if title is None else title, panels, legend, tuple(filter(None, (*notes, colours.meaning))))


def formatted(value: Any) -> str:
    """A number in few characters.

    >>> formatted(1.0), formatted(1 / 3), formatted(123456789), formatted((1, 2)), formatted(True)
    ('1', '0.3333', '123456789', '(1,2)', '1')
    """
    if isinstance(value, tuple):
        return f"({','.join(map(formatted, value))})"
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _tensor(tensor: Any) -> Any:
    if hasattr(tensor, "layout") and hasattr(tensor, "engine"):
        return tensor
    if hasattr(tensor, "__dlpack__"):
        from tilewright.lang.arguments.dlpack import from_dlpack

        return from_dlpack(tensor)
    raise ArgumentError(f"cannot draw {tensor!r} as a tensor: give a Tensor, or an array with __dlpack__")


def _layout(tensor: Any) -> AnyLayout:
    """The layout with numbers in place of extents that compiled functions take at run time."""
    layout: AnyLayout = tensor.layout
    array = getattr(tensor, "array", None)
    if array is not None and isinstance(layout, Layout) and not (is_static(layout.shape) and is_static(layout.stride)):
        layout = Layout(tuple(array.shape), tuple(array.stride))
    if not layout.is_static():
        raise ArgumentError(f"cannot draw the tensor {tensor}: its extents are known only when the kernel runs")
    return layout


def _number(tensor: Any, layout: AnyLayout, index: int) -> Any:
    try:
        value = tensor[idx2crd(index, layout.shape)]
    except TilewrightError as error:
        raise ArgumentError(f"cannot draw the tensor {tensor}: its numbers cannot be read here: {error}") from error
    if isinstance(value, tuple):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, int | float):
        raise ArgumentError(f"cannot draw the tensor {tensor}: its numbers are known only when the kernel runs")
    return value


def _colours(color_by: ColorBy, values: dict[int, Any], bits: int | None) -> tuple[ElementColours, Legend]:
    if color_by != "value":
        return element_colours(color_by, bits), ()
    finite = [v for v in values.values() if isinstance(v, int | float) and math.isfinite(v)]
    if not finite:  # coordinates, or nothing that could be ordered
        return ElementColours(lambda at: BLANK, ""), ()
    least, most = min(finite), max(finite)

    def of(at: ElementDescription) -> str:
        value = values[at.index]
        if not math.isfinite(value):
            return "#f2b8b5"
        return _shade(0 if most == least else round((value - least) / (most - least) * (STEPS - 1)))

    odd = "red: not finite" if len(finite) < len(values) else ""
    strip = tuple(map(_shade, range(STEPS))) if most > least else _shade(0)
    name = f"{formatted(least)} to {formatted(most)}" if most > least else formatted(least)
    return ElementColours(of, odd), ((strip, name),)


def _shade(step: int) -> str:
    return oklch(0.965 - 0.25 * step / (STEPS - 1), 0.015 + 0.095 * step / (STEPS - 1), 245)
