"""C++ identifiers: the user's variable names made valid and unique inside one kernel."""

from __future__ import annotations

import re

KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
    const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t
    tw smem e g f threadIdx blockIdx blockDim gridDim warpSize printf memcpy memset clock clock64 min max abs assert
    trap isnan isinf
    exp exp2 log log2 log10 sin cos tan asin acos atan tanh sinh cosh sqrt rsqrt cbrt erf erfc floor ceil rint round
    trunc fmod pow fma atan2 copysign hypot div ldiv j0 j1 jn y0 y1 yn gamma index signbit
    char2 char4 short2 int2 int3 int4 uint2 uint3 uint4 float2 float3 float4 double2 dim3""".split()
)


class Names:
    """Gives fresh identifiers. ``e``, ``g`` and ``f`` are kept for the small unrolled loops that the emitter writes.

    >>> names = Names()
    >>> names.fresh("acc"), names.fresh("acc"), names.fresh("for"), names.fresh("tid.x"), names.fresh("λ2")
    ('acc', 'acc_1', 'for_1', 'tid_x', 'v2')
    """

    def __init__(self) -> None:
        self._taken = set(KEYWORDS)
        self._next: dict[str, int] = {}

    def reserve(self, name: str) -> None:
        """Keep ``name`` from being given."""
        self._taken.add(name)

    def fresh(self, hint: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]", "_", hint).strip("_")
        base = re.sub(r"__+", "_", base)  # two underscores are reserved in C++
        if not base or base[0].isdigit():
            base = f"v{base}"
        if base not in self._taken:
            self._taken.add(base)
            return base
        number = self._next.get(base, 0)
        while True:
            number += 1
            if (name := f"{base}_{number}") not in self._taken:
                break
        self._next[base] = number
        self._taken.add(name)
        return name
