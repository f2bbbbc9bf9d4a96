"""Name the stubs that have no module beside them: type checkers would see names that Python does not have.

python tools/stubs.py --check
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

alone = [stub for stub in sorted((ROOT / "tilewright").rglob("*.pyi")) if not stub.with_suffix(".py").exists()]
for stub in alone:
    print(f"{stub.relative_to(ROOT)} has no module beside it")
sys.exit(bool(alone))
