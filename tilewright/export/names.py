"""Names of the user's program as C identifiers."""

from __future__ import annotations

import re

from tilewright.errors import ArgumentError

_KEYWORDS = frozenset(
    # C, then C++: the header is for both
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false alignas alignof and and_eq asm bitand bitor catch class compl concept consteval constexpr constinit "
    "const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert "
    "static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq char8_t "
    "char16_t char32_t typeof linux unix NULL errno stdin stdout stderr main".split()
)
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def identifier(name: str) -> str:
    """``name`` made a C identifier: what stands for a parameter, a field or a variable.

    >>> identifier("decomposition.plan.tiled_shape[0]"), identifier("register"), identifier("größe")
    ('decomposition_plan_tiled_shape_0', 'register_', 'gr_e')
    """
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "v"
    if cleaned[0].isdigit() or cleaned.startswith("tw_"):  # tw_: what the launcher calls its own
        cleaned = f"v{cleaned}"
    return f"{cleaned}_" if cleaned in _KEYWORDS else cleaned


class Names:
    """Gives each object a unique name."""

    def __init__(self, *taken: str) -> None:
        self.taken = set(taken)

    def fresh(self, hint: str) -> str:
        base, n = identifier(hint), 1
        name = base
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return name


def check_prefix(prefix: str, what: str = "function_prefix") -> None:
    """ArgumentError unless ``prefix`` can begin the names of C functions."""
    if not isinstance(prefix, str) or not _IDENTIFIER.fullmatch(prefix):
        raise ArgumentError(
            f"export_to_c: {what}={prefix!r} begins the names of C functions, so it has letters, digits and "
            f"underscores only, a letter first{_suggestion(prefix)}"
        )
    if prefix in _KEYWORDS:
        raise ArgumentError(f"export_to_c: {what}={prefix!r} is a word of C; take another")


def _suggestion(prefix: object) -> str:
    return f": {identifier(prefix)!r} would do" if isinstance(prefix, str) and prefix else ""
