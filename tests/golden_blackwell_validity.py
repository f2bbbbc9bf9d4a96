"""Handlers of the golden lines about what tcgen05 has: shapes that the headers allow, text that ptxas assembles."""

from __future__ import annotations

import re
from typing import Any

from tests.golden import handler
from tests.tcgen05_ptx import TARGETS, ptx_targets
from tilewright.atoms.tcgen05_validity import MmaForm, mma_columns
from tilewright.errors import ConstraintError

KINDS = {
    "F16BF16": "f16",
    "TF32": "tf32",
    "F8F6F4": "f8f6f4",
    "S8": "i8",
    "MXF8F6F4": "mxf8f6f4",
    "MXF4": "mxf4",
    "MXF4NVF4": "mxf4nvf4",
}


def form_of(atom: str) -> MmaForm:
    """The form of an atom of the headers, as ``SM100_MMA_S8_2x1SM_TS``."""
    found = re.fullmatch(r"SM100_MMA_([A-Z0-9]+)(_2x1SM)?_(SS|TS)(_SPARSE)?", atom)
    assert found
    return MmaForm(KINDS[found[1]], 2 if found[2] else 1, found[3] == "TS", found[4] is not None)


@handler("tcgen05_shape")
def _shape(line: dict[str, Any]) -> dict[str, Any]:
    args = line["args"]
    form, m = form_of(args["atom"]), args["M"]
    majors = tuple("K" if args[f"major_{x}"] == "any" else args[f"major_{x}"] for x in "AB")
    if form == MmaForm("mxf4nvf4", 2, sparse=True) and m != 256:
        assert not mma_columns(form, m)  # the header forgets to look at M
        m = 256
    return {"result": {"N": list(mma_columns(form, m, (majors[0], majors[1])))}}


@handler("tcgen05_ptx")
def _ptx(line: dict[str, Any]) -> dict[str, Any]:
    try:
        targets = ptx_targets(line["args"]["instruction"])
    except ConstraintError:
        targets = ()
    words = {key: value for key, value in line["result"].items() if key.startswith("error_")}  # ptxas' own
    return {"result": {"accepted": {target: target in targets for target in TARGETS}} | words}
