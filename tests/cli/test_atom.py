"""``tilewright atom``: layouts and pictures of instructions by name."""

from __future__ import annotations

import re

from tests.viz.reading import read_svg


def test_an_mma(command, tmp_path) -> None:
    done = command("atom", "SM80_16x8x8_F32TF32TF32F32_TN", "--svg", tmp_path / "a.svg", "--tex", tmp_path / "a.tex")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:3] == ["ThrID:      32:1", "Shape MNK:  (16,8,8)", "A:          ((4,8),(2,2)):((16,1),(8,64))"]
    drawing = read_svg((tmp_path / "a.svg").read_text())
    assert drawing.title == "SM80_16x8x8_F32TF32TF32F32_TN"
    assert [panel.title for panel in drawing.panels] == ["B (K x N)", "A (M x K)", "C (M x N)"]
    assert r"\begin{tikzpicture}" in (tmp_path / "a.tex").read_text()


def test_a_copy_counts_values_of_the_width_asked_for(command) -> None:
    assert "Source:     (32,8):(8,1)" in command("atom", "SM75_U32x4_LDSM_N").out
    assert "Source:     (32,4):(4,1)" in command("atom", "SM75_U32x4_LDSM_N", "--value-bits", 32).out


def test_a_wgmma(command) -> None:
    assert "Shape MNK:  (64,128,16)" in command("atom", "SM90_64x128x16_F32F16F16_SS<K,K>").out


def test_atoms_are_listed_without_a_name(command) -> None:
    lines = command("atom").out.splitlines()
    names = [line[2:] for line in lines if line.startswith("  ")]
    assert {"SM80_16x8x16_F32F16F16F32_TN", "SM75_U32x4_LDSM_N"} <= set(names)
    titles = [line for line in lines[:-1] if not line.startswith("  ")]
    assert len(titles) > 5 and sum(int(re.findall(r"\((\d+)\)$", title)[0]) for title in titles) == len(names)
    for name in names[:: len(names) // 10]:
        assert command("atom", name).code == 0


def test_a_part_of_a_name_lists_those_that_begin_so(command) -> None:
    lines = command("atom", "SM90_").out.splitlines()
    assert len(lines) > 10 and all(line.startswith("SM90_") and " by " in line for line in lines)
    assert "16 x 8 x 16 by 32 threads" in command("atom", "SM80_16x8x16").out


def test_mistakes(command, tmp_path) -> None:
    assert "did you mean SM75_U32x4_LDSM_N?" in command("atom", "SM75_U32x4_LDSM").complaint
    assert (
        "must end in .svg or .png or .pdf"
        in command("atom", "SM75_U32x4_LDSM_N", "--svg", tmp_path / "a.jpg").complaint
    )
    missing = tmp_path / "missing" / "a.svg"
    assert f"there is no folder {missing.parent}" in command("atom", "SM75_U32x4_LDSM_N", "--svg", missing).complaint
    assert not missing.parent.exists()
    assert "value-bits" in command("atom", "SM75_U32x4_LDSM_N", "--value-bits", 0).complaint
    for bits in (7, 64, 4096):  # its destination gives each thread pieces of 32 bits
        complaint = command("atom", "SM75_U32x4_LDSM_N", "--value-bits", bits).complaint
        assert f"values of {bits} bits do not fit the" in complaint and "of SM75_U32x4_LDSM_N" in complaint
    assert "`tilewright atom` lists them" in command("atom", "ldmatrix").complaint
