"""Colours: eight quiet hues that stay apart for colour-blind readers too, and shades of them. Dark text fits on all."""

from __future__ import annotations

import math
from functools import cache

# Lightness, chroma and hue (OKLCH) of eight colours, and a list that goes on from them. Chosen by a search among quiet
# colours that maximised the least CIEDE2000 distance between any two, as seen with normal sight and with simulated
# protanopia, deuteranopia and tritanopia; the first eight and sixteen of the list are the furthest apart.
HUES = (
    (0.78, 0.10, 255),
    (0.93, 0.10, 105),
    (0.78, 0.075, 15),
    (0.93, 0.05, 180),
    (0.78, 0.10, 135),
    (0.88, 0.05, 60),
    (0.78, 0.05, 315),
    (0.88, 0.10, 210),
)
COLOURS = (
    "#8cbaf7", "#f1ec9d", "#e3a4a8", "#c5f3e9", "#9cc685", "#f1d0b7", "#c4aece", "#82eafc",  # the hues above
    "#a48e2f", "#8c83d1", "#c2719b", "#8b9475", "#36a0aa", "#9b8b89", "#b6b559", "#b9cac6",
    "#eff9d7", "#c290c6", "#63b899", "#97a8ad", "#c58c5c", "#cdd0de", "#919eec", "#dddecf",
    "#9fac7a", "#bcd179", "#bfb7c4", "#80d2f6", "#ded29d", "#8ec9b2", "#bf9b91", "#dceaf4",
)  # fmt: skip
DISTINCT = len(COLOURS)
LANES = 32
GROUP = 4  # lanes in one row of a matrix instruction's accumulators
BLANK = "#ffffff"
BLACK, WHITE = "#10161c", "#ffffff"
DARKEST, LIGHTEST = 0.64, 0.965  # lightness below which dark text is hard to read, and above which hues look the same


def distinct(number: int) -> str:
    """One of 32 colours; those of the first eight numbers differ most. They repeat after 32.

    >>> distinct(1), distinct(1) == distinct(9), distinct(1) == distinct(33)
    ('#f1ec9d', False, True)
    """
    return COLOURS[number % DISTINCT]


def colours_of(what: str, count: int) -> str:
    """The sentence of a legend: what colours stand for, and when they repeat.

    >>> colours_of("the tile", 9), colours_of("the tile", 40)
    ('colour: the tile', 'colour: the tile, modulo 32')
    """
    return f"colour: {what}" + (f", modulo {DISTINCT}" if count > DISTINCT else "")


def lane_colour(warp: int, lane: int) -> str:
    """The hue of a warp in the shade of a lane: darker from one group of four lanes to the next, paler within it."""
    light, chroma, angle = HUES[warp % len(HUES)]
    down, along = divmod(lane % LANES, GROUP)
    light = min(light, 0.86) + 0.085 - 0.026 * down
    return oklch(light, min(chroma * 1.2, _greatest(light, angle)) * (1.0 - 0.18 * along), angle)


def thread_colour(thread: int, threads: int = LANES) -> str:
    """The colour of a thread. Hue by warp and shade by lane; of one warp: hue and shade by group of four lanes.

    >>> thread_colour(0, 32) == thread_colour(32, 64), thread_colour(5) == thread_colour(6)
    (False, False)
    """
    if threads > LANES:
        return lane_colour(thread // LANES, thread)
    group, along = divmod(thread % LANES, GROUP)
    light, chroma, angle = HUES[group]
    light = light + 0.03 - 0.045 * along
    return oklch(light, min(chroma * (0.9 + 0.1 * along), _greatest(light, angle) * 0.8), angle)


HEAT = ((255, 247, 188), (65, 182, 196), (12, 44, 132))  # light yellow, turquoise, dark blue


def heat(share: float) -> str:
    """A colour of a scale from light yellow (0) to dark blue (1), in 33 steps.

    >>> heat(0.0) == heat(0.01) != heat(1.0)
    True
    """
    step = round(min(max(share, 0.0), 1.0) * 32) / 32
    first = 0 if step < 0.5 else 1
    near, far = HEAT[first], HEAT[first + 1]
    return "#" + "".join(f"{round(a + (b - a) * (2 * step - first)):02x}" for a, b in zip(near, far, strict=True))


@cache
def oklch(light: float, chroma: float, angle: float) -> str:
    """An OKLCH colour as ``#rrggbb``, with less chroma where a screen cannot show so much.

    >>> oklch(1.0, 0.0, 0.0), oklch(0.7, 0.0, 0.0)
    ('#ffffff', '#9e9e9e')
    """
    light = min(max(light, DARKEST), 1.0 if chroma == 0 else LIGHTEST)
    linear = _linear_rgb(light, min(chroma, _greatest(light, angle)), math.radians(angle))
    return "#" + "".join(f"{round(255 * _encoded(min(max(part, 0.0), 1.0))):02x}" for part in linear)


@cache
def _greatest(light: float, angle: float) -> float:
    """The greatest chroma that a screen shows at this lightness and hue."""
    low, high = 0.0, 0.4
    for _ in range(12):
        chroma = (low + high) / 2
        inside = all(-1e-3 <= part <= 1 + 1e-3 for part in _linear_rgb(light, chroma, math.radians(angle)))
        low, high = (chroma, high) if inside else (low, chroma)
    return low


@cache
def text_colour(background: str) -> str:
    """Dark or white, whichever is easier to read on ``background``.

    >>> text_colour("#ffeb00"), text_colour("#3b00ff")
    ('#10161c', '#ffffff')
    """
    return max(BLACK, WHITE, key=lambda ink: contrast(ink, background))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: 1 to 21; text should have 4.5.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    dark, bright = sorted((relative_luminance(one), relative_luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def relative_luminance(colour: str) -> float:
    """The luminance of an sRGB colour ``#rrggbb``, 0 for black and 1 for white (WCAG 2)."""
    red, green, blue = (_linear(int(colour[start : start + 2], 16) / 255) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def _encoded(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else float(1.055 * value ** (1 / 2.4) - 0.055)


def _linear_rgb(light: float, chroma: float, angle: float) -> tuple[float, float, float]:
    """Björn Ottosson's OKLab, from polar coordinates."""
    a, b = chroma * math.cos(angle), chroma * math.sin(angle)
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
