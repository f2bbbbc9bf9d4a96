"""The colours stay apart for every reader: CIEDE2000 distances under simulated colour-blindness, and text contrast."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.viz.colour import contrast, distinct, lane_colour, relative_luminance, text_colour, thread_colour

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    t = (TO_XYZ @ rgb) / TO_XYZ.sum(axis=1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: np.ndarray, two: np.ndarray) -> float:
    """Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean_c = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    dh = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dl, dc, d_big_h = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(dh) / 2)
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = (h1 + dh / 2) % 360 if c1 * c2 else h1 + h2
    t = (
        1
        - 0.17 * np.cos(np.radians(mean_h - 30))
        + 0.24 * np.cos(np.radians(2 * mean_h))
        + 0.32 * np.cos(np.radians(3 * mean_h + 6))
        - 0.20 * np.cos(np.radians(4 * mean_h - 63))
    )
    turn = -np.sin(np.radians(60 * np.exp(-(((mean_h - 275) / 25) ** 2))))
    turn *= 2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    sl = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    sc, sh = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    return float(np.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (d_big_h / sh) ** 2 + turn * (dc / sc) * (d_big_h / sh)))


def test_the_distance_agrees_with_published_pairs() -> None:
    # Rows 1, 7, 17 and 25 of the table of Sharma, Wu and Dalal.
    for one, two, expected in [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ]:
        assert ciede2000(np.array(one), np.array(two)) == pytest.approx(expected, abs=1e-4)


# About 2.3 is a difference that is just noticed side by side.
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize(("count", "normal", "least"), [(8, 12.0, 8.5), (16, 10.0, 7.0), (32, 6.0, 4.0)])
def test_any_two_colours_are_told_apart(count: int, normal: float, least: float, sight: str) -> None:
    colours = [distinct(number) for number in range(count)]
    assert len(set(colours)) == count
    seen = [lab(np.clip(SIGHT[sight] @ linear(colour), 0, 1)) for colour in colours]
    distances = [ciede2000(seen[i], seen[j]) for i in range(len(seen)) for j in range(i)]
    assert min(distances) >= (normal if sight == "normal" else least)


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_of_neighbouring_warps_are_distinguishable(sight: str) -> None:
    for warp in range(7):
        one, two = ([lab(SIGHT[sight] @ linear(lane_colour(w, lane))) for lane in range(32)] for w in (warp, warp + 1))
        middle = ciede2000(np.mean(one, axis=0), np.mean(two, axis=0))
        assert middle >= 6


def test_the_lanes_of_a_warp_are_shades_of_their_own() -> None:
    for warp in range(8):
        shades = [lane_colour(warp, lane) for lane in range(32)]
        assert len(set(shades)) == 32
        light = [lab(linear(shade))[0] for shade in shades]
        assert all(light[lane] > light[lane + 4] for lane in range(28))  # darker from group to group


def test_32_threads_have_32_colours() -> None:
    assert len({thread_colour(thread, 32) for thread in range(32)}) == 32
    assert thread_colour(3, 128) == lane_colour(0, 3) and thread_colour(100, 128) == lane_colour(3, 4)


def fills() -> set[str]:
    numbered = {distinct(n) for n in range(32)}
    return numbered | {thread_colour(t, n) for n in (32, 256) for t in range(n)} | {"#ffffff"}


def test_text_contrast_is_sufficient() -> None:
    for colour in fills():
        assert contrast(colour, text_colour(colour)) >= 4.5  # WCAG 2, level AA
        bright, dark = sorted((relative_luminance(colour), relative_luminance(text_colour(colour))), reverse=True)
        assert contrast(colour, text_colour(colour)) == (bright + 0.05) / (dark + 0.05)


def test_colours_are_quiet() -> None:
    """None is as strong as the pure colours of a screen, whose chroma in CIELAB is 100 and more, and none is dark."""
    for colour in fills():
        light, a, b = lab(linear(colour))
        assert np.hypot(a, b) <= 55 and light >= 55, colour
