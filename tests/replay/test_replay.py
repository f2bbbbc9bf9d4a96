"""The IR and the CUDA text of every shipped kernel, kept as files: a refactor that changes them shows in the diff.

Rewrite them with ``python -m tests.replay.test_replay``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replay.programs import PROGRAMS
from tilewright.cuda import emit
from tilewright.ir.core import Function

KEPT = Path(__file__).parents[1] / "data" / "replay"
FORMS: dict[str, Callable[[Function], str]] = {"ir": str, "cu": lambda function: emit(function).text}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_as_kept(name: str, form: str) -> None:
    kept = (KEPT / f"{name}.{form}").read_text()
    assert FORMS[form](PROGRAMS[name]()) == kept, "if the change is wanted: python -m tests.replay.test_replay"


def main() -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, program in PROGRAMS.items():
        function = program()
        for form, text in FORMS.items():
            (KEPT / f"{name}.{form}").write_text(text(function))


if __name__ == "__main__":
    main()
