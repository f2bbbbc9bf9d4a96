"""Colours. Threads get one of 32 that stay apart for colour-blind readers too; layouts get eight light ones."""

from __future__ import annotations

# Chosen by a search that maximised the least CIEDE2000 distance between any two, as seen with normal sight and with
# simulated protanopia, deuteranopia and tritanopia; ordered so that neighbours in the list differ most.
THREADS = (
    "#b1c4d8", "#764e00", "#4e4e89", "#ffeb00", "#b18962", "#89eb9d", "#76899d", "#894eff",
    "#d8ffd8", "#ebff89", "#ff4e00", "#eb9dff", "#62ffeb", "#4ec49d", "#ebc4c4", "#b1c400",
    "#276262", "#b1b162", "#c49db1", "#629d89", "#d876c4", "#8989ff", "#897662", "#9d623b",
    "#d800c4", "#1476b1", "#627676", "#279d00", "#766289", "#b12762", "#3b00ff", "#624e3b",
)  # fmt: skip
LIGHT = ("#ebebff", "#ffeb9d", "#89d8c4", "#d89d9d", "#d8ffd8", "#9db1c4", "#d8c4ff", "#b1b162")
BLANK = "#ffffff"

BLACK, WHITE = "#000000", "#ffffff"


def thread_colour(thread: int) -> str:
    """The colour of a thread; it repeats every 32 threads.

    >>> thread_colour(1) == thread_colour(33), thread_colour(1) == thread_colour(2)
    (True, False)
    """
    return THREADS[thread % len(THREADS)]


def light_colour(number: int) -> str:
    """One of eight light colours."""
    return LIGHT[number % len(LIGHT)]


def text_colour(background: str) -> str:
    """Black or white, whichever is easier to read on ``background``.

    >>> text_colour("#ffeb00"), text_colour("#3b00ff")
    ('#000000', '#ffffff')
    """
    luminance = relative_luminance(background)
    return BLACK if (luminance + 0.05) ** 2 >= 1.05 * 0.05 else WHITE


def relative_luminance(colour: str) -> float:
    """The luminance of an sRGB colour ``#rrggbb``, 0 for black and 1 for white (WCAG 2)."""
    red, green, blue = (_linear(int(colour[start : start + 2], 16) / 255) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
