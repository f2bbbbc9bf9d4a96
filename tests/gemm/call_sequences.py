"""Sequences of calls of the library's products, of which each changes a few properties of the call before: whatever is
kept between calls (launches, plans, packed operands, choices by geometry) must have all of them in its key.

A case is a number: it draws an operator, its operands (small integers, scales that are powers of two) and the changes.
Every result equals NumPy's, or the call is refused.

``python -m tests.gemm.call_sequences --cases 200`` runs many of them, ``--operator`` those of one operator, and
``--device cuda`` those of tensors of the GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import torch

from tests.gemm.drawn_calls import EIGHT, FLOATS, LAYOUTS, ROWS, Calls, as_float, fewer, laid
from tests.gemm.drawn_calls_of_models import MODELS
from tests.search_options import add_options, in_processes, leave
from tilewright import sim
from tilewright.errors import TilewrightError
from tilewright.gemm import (
    PermutedOperand,
    SplitK,
    block_scaled_matmul,
    blocked_scales,
    gemm,
    matmul,
    scaled_grouped_matmul,
    scaled_matmul,
)


class Dense(Calls):
    """``matmul`` of tensors or arrays, permuted or not, on changing GPUs of the simulator."""

    choices: ClassVar = {
        "dtype": tuple(FLOATS),
        "frame": ("torch", "numpy"),
        "a": LAYOUTS,
        "b": LAYOUTS,
        "c": LAYOUTS,
        "of_c": (None, "f32", "same", "f16"),
        "beta": (1.0, 0.0, 2.0),
        "alpha": (1.0, 2.0, -0.5),
        "permuted": (None, "a", "b", "both"),
        "order": ((0, 2, 1, 3), (0, 1, 2, 3), (1, 3, 0, 2)),
        "result": (None, "f32"),
        "bias": (False, True),
        "activation": (None, "relu"),
        "into": (False, True),
        "autocast": (False, True),
        "arch": (None, "sm_80", "sm_90a", "sm_100a", "sm_120a"),
        "decomposition": ("auto", "stream_k", SplitK(2)),
        "rows": ROWS,
    }
    on_gpu: ClassVar = {"frame": ("torch",), "arch": (None,)}

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((8, 32, 40), (16, 40, 64), (16, 32, 64))

    def fill(self) -> None:
        self.x, self.y = self.integers(self.m, self.k), self.integers(self.k, self.n)
        self.z, self.v = self.integers(self.m, self.n), self.integers(self.n)

    def operand(self, x: np.ndarray, s: dict[str, Any], name: str, of: torch.dtype | None = None) -> Any:
        found = laid(self.tensor(x).to(of or FLOATS[s["dtype"]]), s[name])
        return found if s["frame"] == "torch" or found.dtype == torch.bfloat16 else found.numpy()

    def permuted(self, x: np.ndarray, s: dict[str, Any]) -> Any:
        order = s["order"]
        modes = x.reshape(2, x.shape[0] // 2, x.shape[1] // 8, 8).transpose(order)
        found = self.tensor(np.ascontiguousarray(modes)).to(FLOATS[s["dtype"]])
        return PermutedOperand(found if s["frame"] == "torch" or s["dtype"] == "bf16" else found.numpy(), order)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m = fewer(self.m, s["rows"])
        m -= m % 2 if s["permuted"] else 0  # rows are two modes there
        x, z = self.x[:m], self.z[:m]
        a = self.permuted(x, s) if s["permuted"] in ("a", "both") else self.operand(x, s, "a")
        b = self.permuted(self.y, s) if s["permuted"] in ("b", "both") else self.operand(self.y, s, "b")
        more: dict[str, Any] = {"alpha": s["alpha"], "activation": s["activation"], "decomposition": s["decomposition"]}
        wanted = s["alpha"] * (x @ self.y).astype(np.float64)
        if s["of_c"]:
            of = FLOATS[s["dtype"] if s["of_c"] == "same" else s["of_c"]]
            more |= {"c": self.operand(z, s, "c", of), "beta": s["beta"]}
            wanted = wanted + s["beta"] * z
        if s["bias"]:
            bias = self.tensor(self.v).to(FLOATS[s["dtype"]])
            more["bias"] = bias if s["frame"] == "torch" or s["dtype"] == "bf16" else bias.numpy()
            wanted = wanted + self.v
        if s["result"]:
            whole = s["frame"] == "torch" or s["dtype"] == "bf16"
            more["out_dtype"] = FLOATS[s["result"]] if whole else np.float32
        elif s["into"]:
            more["out"] = self.operand(np.full((m, self.n), 99), s, "c")
        cast = torch.autocast(self.device, torch.bfloat16) if s["autocast"] else contextlib.nullcontext()
        options = sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext()
        with cast, options:
            found = matmul(a, b, **more)
        return found, np.maximum(wanted, 0) if s["activation"] else wanted


class Named(Calls):
    """``gemm`` by kernels of GPUs that the choice does not meet here."""

    choices: ClassVar = {
        "kernel": ("sm120_f16", "blackwell_f16", "hopper_f16", "sm120_tf32", "blackwell_tf32", "sm120_i8"),
        "a": ("rows", "padded", "odd"),
        "b": ("rows", "padded"),
        "source": (False, True),
        "beta": (1.0, 2.0),
        "alpha": (1.0, 2.0),
        "decomposition": ("data_parallel", "stream_k", SplitK(2), SplitK(2, mode="parallel")),
        "batch": (1, 2),
        "sms": (4, 2, 7),
        "rows": (0, 1),
    }
    repeats = False
    on_gpu: ClassVar = {"kernel": ("hopper_f16", "tensorop_f16", "hopper_tf32", "tensorop_tf32", "hopper_i8")}

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((8, 72, 136), (16, 48, 144), (64, 128, 256))

    def fill(self) -> None:
        self.x, self.y = self.integers(2, self.m, self.k), self.integers(2, self.n, self.k)
        self.z = self.integers(2, self.m, self.n)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m = self.m if s["rows"] == 0 else self.m // 2
        kinds = {"f16": torch.float16, "tf32": torch.float32, "i8": torch.int8}
        of = kinds[s["kernel"].split("_")[1]]
        number = s["batch"] if s["decomposition"] == "data_parallel" else 1

        def stack(x: np.ndarray, how: str, of: torch.dtype = of) -> Any:
            each = [laid(self.tensor(one).to(of), how) for one in x[:number]]
            found = each[0] if number == 1 else torch.stack(each)
            return found.numpy() if self.device == "cpu" else found

        a, b = stack(self.x[:, :m], s["a"]), stack(self.y, s["b"]).swapaxes(-1, -2)
        wanted = s["alpha"] * (self.x[:, :m] @ self.y.transpose(0, 2, 1))
        more: dict[str, Any] = {"alpha": s["alpha"]}
        if s["source"]:
            more |= {"c": stack(self.z[:, :m], "rows", torch.int32 if of == torch.int8 else of), "beta": s["beta"]}
            wanted = wanted + s["beta"] * self.z[:, :m]
        arch = {"sm120": "sm_120a", "blackwell": "sm_100a"}.get(s["kernel"].split("_")[0], "sm_90a")
        with sim.options(arch=arch, sms=s["sms"]):
            found = gemm(a, b, kernel=s["kernel"], decomposition=s["decomposition"], **more).d
        return found, wanted[0] if number == 1 else wanted[:number]


class Scaled(Calls):
    """``scaled_matmul`` with scales of the whole, of rows and of blocks."""

    choices: ClassVar = {
        "kind": ("whole", "rows", "blocks", "tiles"),
        "dtype": tuple(EIGHT),
        "a": ("rows", "padded", "odd"),
        "scales": ("rows", "columns", "padded", "spread"),
        "fast": (False, True),
        "result": ("f32", "f16"),
        "bias": (False, True),
        "activation": (None, "relu"),
        "arch": (None, "sm_90a", "sm_89", "sm_100a", "sm_120a"),
        "rows": ROWS,
    }

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((16, 37, 140), (16, 48, 144), (128, 256))

    def fill(self) -> None:
        self.x, self.y, self.v = self.integers(self.m, self.k), self.integers(self.n, self.k), self.integers(self.n)
        deep, wide = self.k // 128, -(-self.n // 128)
        self.pairs = {
            "whole": (self.powers(1), self.powers(1)),
            "rows": (self.powers(self.m, 1), self.powers(1, self.n)),
            "blocks": (self.powers(self.m, deep), self.powers(deep, wide)),
            "tiles": (self.powers(self.m, deep), self.powers(deep, self.n)),
        }

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m = fewer(self.m, s["rows"])
        of, (first, second) = EIGHT[s["dtype"]], self.pairs[s["kind"]]
        first = first[:m] if s["kind"] != "whole" else first
        a = laid(self.tensor(self.x[:m]).float().to(of), s["a"])
        b = self.tensor(self.y).float().to(of).T
        scales = [self.tensor(x) for x in (first, second)]
        if s["kind"] != "whole":
            scales = [laid(x, s["scales"]) for x in scales]
        bias = self.tensor(self.v).float() if s["bias"] else None
        options = sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext()
        with options:
            found = scaled_matmul(
                a,
                b,
                *scales,
                bias,
                out_dtype=FLOATS[s["result"]],
                activation=s["activation"],
                use_fast_accum=s["fast"],
            )
        one, other = first.astype(np.float64), second.astype(np.float64)
        if s["kind"] in ("blocks", "tiles"):
            one, other = np.repeat(one, 128, 1), np.repeat(other, 128, 0)
            other = np.repeat(other, 128, 1)[:, : self.n] if s["kind"] == "blocks" else other
        wanted = (self.x[:m] * one) @ (self.y.T * other) + (self.v if s["bias"] else 0)
        return found, np.maximum(wanted, 0) if s["activation"] else wanted


class ScaledGroups(Calls):
    """``scaled_grouped_matmul`` of groups of rows, with scales of rows and of blocks; the offsets change, too."""

    choices: ClassVar = {
        "offsets": (0, 1, 2),
        "dtype": tuple(EIGHT),
        "kind": ("rows", "blocks", "tiles"),
        "a": ("rows", "padded", "odd"),
        "result": ("f32", "f16", "bf16"),
        "into": (False, True),
        "fast": (False, True),
        "arch": (None, "sm_90a", "sm_89"),
        "rows": ROWS,
    }

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((40, 140), (16, 144), (128, 256))

    def fill(self) -> None:
        self.x, self.y = self.integers(self.m, self.k), self.integers(3, self.n, self.k)
        deep, wide = self.k // 128, -(-self.n // 128)
        self.first = {"rows": self.powers(self.m), "blocks": self.powers(self.m, deep)}
        self.first["tiles"] = self.first["blocks"]
        self.second = {
            "rows": self.powers(3, self.n),
            "blocks": self.powers(3, deep, wide),
            "tiles": self.powers(3, deep, self.n),
        }
        self.ends = [sorted(self.random.choices(range(self.m // 2 + 1), k=3)) for _ in range(3)]

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m = fewer(self.m, s["rows"])
        of, ends = EIGHT[s["dtype"]], [min(end, m) for end in self.ends[s["offsets"]]]
        first, second = self.first[s["kind"]][:m], self.second[s["kind"]]
        a = laid(self.tensor(self.x[:m]).float().to(of), s["a"])
        b = self.tensor(self.y).float().to(of).mT
        deep = np.arange(self.k) // 128
        left = self.x[:m] * (first[:, None] if s["kind"] == "rows" else first[:, deep]).astype(np.float64)
        wanted = np.zeros((m, self.n))
        for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if s["kind"] == "rows":
                right = self.y[i].T * second[i].astype(np.float64)
            else:
                columns = np.arange(self.n) // (128 if s["kind"] == "blocks" else 1)
                right = self.y[i].T * second[i][deep][:, columns].astype(np.float64)
            wanted[begin:end] = left[begin:end] @ right
        more: dict[str, Any] = {"out_dtype": FLOATS[s["result"]]}
        if s["into"]:
            more = {"out": torch.full((m, self.n), float("nan"), dtype=FLOATS[s["result"]], device=self.device)}
        options = sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext()
        with options:
            scales = self.tensor(first), self.tensor(second)
            offsets = torch.tensor(ends, dtype=torch.int32, device=self.device)
            found = scaled_grouped_matmul(a, b, *scales, offsets, use_fast_accum=s["fast"], **more)
        return found, wanted


class BlockScaled(Calls):
    """``block_scaled_matmul`` of 8 and 4 bits, with plain and blocked factors, on the GPUs that have it."""

    choices: ClassVar = {
        "form": ("e4m3", "e5m2", "mxfp4", "nvfp4"),
        "arch": ("sm_100a", "sm_120a", "sm_103a"),
        "blocked": (False, True),
        "batch": (1, 2),
        "result": ("f32", "bf16"),
        "alpha": (1.0, 0.5),
        "bias": (False, True),
        "activation": (None, "relu"),
        "into": (False, True),
        "frame": ("torch", "numpy"),
        "rows": ROWS,
    }
    on_gpu = None

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((40, 140), (16, 72), (64, 160))

    def fill(self) -> None:
        self.x, self.y = self.numbers.integers(-2, 3, (2, self.m, self.k)), self.integers(2, self.n, self.k) // 2
        self.v = self.integers(self.n)
        self.scales = [self.powers(2, rows, self.k // 16) for rows in (self.m, self.n)]

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m, number = fewer(self.m, s["rows"]), s["batch"]
        vector = 16 if s["form"] == "nvfp4" else 32
        of = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}.get(s["form"])
        factor = ml_dtypes.float8_e4m3fn if s["form"] == "nvfp4" else ml_dtypes.float8_e8m0fnu
        rows = [self.x[:number, :m], self.y[:number]]
        scales = [x[:number, : y.shape[1], : -(-self.k // vector)] for x, y in zip(self.scales, rows, strict=True)]
        wide = [x * np.repeat(y, vector, -1)[..., : self.k].astype(float) for x, y in zip(rows, scales, strict=True)]
        wanted = s["alpha"] * wide[0] @ wide[1].swapaxes(-1, -2) + (self.v if s["bias"] else 0)
        made = [x.astype(of) if of else packed(x) for x in rows]
        given = [x.astype(factor) for x in scales]
        if number == 1:
            made, given, wanted = [x[0] for x in made], [x[0] for x in given], wanted[0]
        given = [blocked_scales(x) for x in given] if s["blocked"] else [given[0], given[1].swapaxes(-1, -2)]
        dtype = np.float32 if s["result"] == "f32" else ml_dtypes.bfloat16
        out, bias = np.full(wanted.shape, 99, dtype), self.v.astype(np.float32)
        if s["frame"] == "torch":
            made, given, (out, bias) = (list(map(as_torch, x)) for x in (made, given, (out, bias)))
        more: dict[str, Any] = {"out": out} if s["into"] else {"out_dtype": out.dtype}
        more |= {"alpha": s["alpha"], "activation": s["activation"], "bias": bias if s["bias"] else None}
        with sim.options(arch=s["arch"], sms=4):
            found = block_scaled_matmul(made[0], made[1].swapaxes(-1, -2), *given, **more)
        return found, np.maximum(wanted, 0) if s["activation"] else wanted


def packed(x: np.ndarray) -> np.ndarray:
    """Two numbers of 4 bits in a byte."""
    bits = x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return bits[..., ::2] | bits[..., 1::2] << 4


def as_torch(x: np.ndarray) -> torch.Tensor:
    """A PyTorch tensor of the same bytes."""
    dtype = getattr(torch, str(x.dtype))
    return torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}")).view(dtype)


OPERATORS: dict[str, type[Calls]] = {
    "matmul": Dense,
    "gemm": Named,
    "scaled_matmul": Scaled,
    "scaled_grouped_matmul": ScaledGroups,
    "block_scaled_matmul": BlockScaled,
    **MODELS,
}


def states(calls: Calls, choose: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """States of which each differs from the last one by one to three properties; some are followed by others that
    differ in their number of rows alone."""
    state = {name: values[0] for name, values in calls.properties.items()}
    for _ in range(count):
        for name in choose.sample(list(calls.properties), choose.randint(1, 3)):
            state[name] = choose.choice(calls.properties[name])
        yield dict(state)
        if "rows" in state and choose.random() < 0.5:
            for rows in choose.sample(calls.properties["rows"], len(calls.properties["rows"])):
                yield {**state, "rows": rows}


def rounded(wanted: np.ndarray, found: Any) -> np.ndarray:
    if isinstance(found, torch.Tensor):
        return as_float(torch.as_tensor(wanted).to(found.dtype))
    return wanted.astype(found.dtype).astype(np.float64)


def verdicts(
    case: int, operator: str | None = None, count: int = 6, device: str = "cpu"
) -> tuple[Counter[str], list[str]]:
    """How many of the calls of ``count`` states were right or refused, and what was wrong. A call that is kept is made
    twice, the second time with other numbers in other memory."""
    choose, counts, wrong = random.Random(case), Counter[str](), []
    there = [name for name, each in OPERATORS.items() if device == "cpu" or each.on_gpu is not None]
    name = operator or there[case % len(there)]
    calls = OPERATORS[name](choose, device)
    for state, again in product(states(calls, choose, count), (False, True)[: 1 + calls.repeats]):
        shown = f"case {case} {name}{' again' if again else ''} {state}"
        calls.fill()
        try:
            found, wanted = calls.call(**state)
        except TilewrightError as refused:
            counts[f"{name} refused: {' '.join(str(refused).split())[:70]}"] += 1
            continue
        except Exception as error:
            wrong.append(f"{shown}: {type(error).__name__}: {error}")
            continue
        given, exact = as_float(found), rounded(wanted, found)
        if given.shape == exact.shape and np.array_equal(given, exact):
            counts[f"{name} right"] += 1
        else:
            wrong.append(f"{shown}: {np.argwhere(given != exact)[:3].tolist()} of {exact.shape} differ")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser, devices=True)
    parser.add_argument("--operator", choices=OPERATORS)
    options = parser.parse_args()
    counts, findings = Counter[str](), 0
    for _, (found, wrong) in in_processes(options, partial(verdicts, operator=options.operator, device=options.device)):
        counts += found
        findings += len(wrong)
        print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
    for kind, count in sorted(counts.items()):
        print(count, kind)
    return 1 if findings else 0


if __name__ == "__main__":
    leave(main())
