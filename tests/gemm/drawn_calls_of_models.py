"""Drawn calls of products with prepared and with sparse weights, and of groups."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import numpy as np
import torch

from tests.gemm.drawn_calls import EIGHT, FLOATS, ROWS, Calls, fewer, laid
from tilewright import sim
from tilewright.gemm import combine_rows, compress_2_4, grouped_matmul, mixed_matmul, prepare_weight, sparse_matmul
from tilewright.gemm.epilogue.activations import Gated


class CallsOfModels(Calls):
    """The part of the operators that makes tensors."""

    def floats(self, x: np.ndarray, of: torch.dtype) -> torch.Tensor:
        return self.tensor(x).float().to(of)

    def full(self, shape: tuple[int, ...], of: torch.dtype) -> torch.Tensor:
        return torch.full(shape, 99.0, device=self.device).to(of)


class Mixed(CallsOfModels):
    """``mixed_matmul`` of few and of many rows, whose weights are prepared anew for each call."""

    choices: ClassVar = {
        "rows": tuple(range(9)),
        "dtype": ("f16", "bf16", "e4m3"),
        "bits": (4, 8),
        "zeros": (False, True),
        "group": (64, 128, 32, None),
        "scales": ("f16", "bf16", "f32"),
        "a": ("rows", "padded", "odd", "columns", "spread"),
        "bias": (False, True),
        "scale_a": (None, "one", "rows"),
        "activation": (None, "relu"),
        "result": ("f32", "f16"),
        "into": (False, True),
        "arch": (None, "sm_90a", "sm_80"),
    }

    def draw(self) -> None:
        self.n, self.k = self.extents((16, 72), (128, 256))

    def fill(self) -> None:
        self.x, self.y, self.v = self.integers(70, self.k), self.integers(self.n, self.k), self.integers(self.n)
        counts = {group: self.k // group if group else 1 for group in (32, 64, 128, None)}
        self.scales = {group: self.powers(self.n, count) for group, count in counts.items()}
        self.points = {group: self.numbers.integers(0, 4, (self.n, count)) for group, count in counts.items()}
        self.factors = self.powers(70)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m, of = (3, 33, 70, 36, 39, 5, 8, 35, 0)[s["rows"]], {**FLOATS, **EIGHT}[s["dtype"]]
        group, a = s["group"] or self.k, laid(self.floats(self.x[:m], of), s["a"])
        scales, points = self.scales[s["group"]], self.points[s["group"]] if s["zeros"] and s["bits"] == 4 else None
        numbers = self.y if points is None else self.y + 3  # with zero points they are 0 to 15
        spread = numbers - (0 if points is None else np.repeat(points, group, 1))
        wanted = (self.x[:m] @ (spread * np.repeat(scales.astype(np.float64), group, 1)).T).astype(np.float64)
        zeros = None if points is None else self.tensor(points.astype(np.uint8))
        y = self.tensor(numbers.astype(np.int8))
        weight = prepare_weight(y, self.floats(scales, FLOATS[s["scales"]]), zeros, bits=s["bits"])
        more: dict[str, Any] = {"activation": s["activation"]}
        if s["scale_a"]:
            factors = self.factors[:1] if s["scale_a"] == "one" else self.factors[:m]
            more["scale_a"] = self.tensor(factors)
            wanted = wanted * factors[:, None]
        result = FLOATS[s["result"]]
        more |= {"out": self.full((m, self.n), result)} if s["into"] else {"out_dtype": result}
        bias = self.floats(self.v, torch.float32) if s["bias"] else None
        with sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext():
            found = mixed_matmul(a, weight, bias, **more)
        wanted = wanted + (self.v if s["bias"] else 0)
        return found, np.maximum(wanted, 0) if s["activation"] else wanted


class Sparse(CallsOfModels):
    """``sparse_matmul``, also into the array that is added."""

    choices: ClassVar = {
        "dtype": ("f16", "bf16"),
        "b": ("rows", "columns", "padded", "odd"),
        "source": (None, "apart", "out"),
        "alpha": (1.0, 2.0),
        "bias": (False, True),
        "activation": (None, "relu"),
        "into": (False, True),
        "arch": (None, "sm_90a", "sm_80"),
        "rows": (0, 1),
    }

    def draw(self) -> None:
        self.n, self.k = self.extents((16, 72), (64, 128))

    def fill(self) -> None:
        self.x, self.y = self.integers(128, self.k), self.integers(self.k, self.n)
        self.x[:, self.numbers.integers(0, 2) :: 2] = 0
        self.z, self.v = self.integers(128, self.n), self.integers(self.n)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m, of = (64, 128)[s["rows"]], FLOATS[s["dtype"]]
        a, b = compress_2_4(self.floats(self.x[:m], of)), laid(self.floats(self.y, of), s["b"])
        c, out = self.floats(self.z[:m], of), self.full((m, self.n), of)
        wanted = s["alpha"] * (self.x[:m] @ self.y).astype(np.float64)
        more: dict[str, Any] = {"alpha": s["alpha"], "activation": s["activation"]}
        more["out"] = c if s["source"] == "out" else out if s["into"] else None
        if s["source"]:
            more |= {"c": c, "beta": 1.0}
            wanted = wanted + self.z[:m]
        if s["bias"]:
            more["bias"] = self.floats(self.v, of)
            wanted = wanted + self.v
        with sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext():
            found = sparse_matmul(a, b, **more)
        return found, np.maximum(wanted, 0) if s["activation"] else wanted


class Groups(CallsOfModels):
    """``grouped_matmul``: each mode is cut, rows are read by index, tiles are shared, a gate is applied."""

    choices: ClassVar = {
        "cut": ("rows", "columns", "depth", "counts"),
        "decomposition": ("auto", "stream_k", "data_parallel"),
        "indexed": (False, True),
        "gate": (None, "relu"),
        "dtype": ("f16", "bf16"),
        "a": ("rows", "padded", "odd", "columns"),
        "into": (False, True),
        "result": (None, "f32"),
        "kernel": (None, "tensorop_f16"),
        "arch": (None, "sm_90a", "sm_80"),
        "rows": ROWS,
    }

    def draw(self) -> None:
        self.m, self.n, self.k = self.extents((24, 40), (16, 72), (64, 128))

    def fill(self) -> None:
        self.x, self.y = self.integers(3, self.m, self.k), self.integers(3, self.k, self.n)
        self.ends = sorted(self.random.choices(range(self.m // 2), k=3))
        self.index = self.numbers.permutation(self.m)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        m = fewer(self.m, s["rows"])
        of, ends = FLOATS[s["dtype"]], [min(end, m) for end in self.ends]
        begins = [0, *ends]
        x, y, index = self.x, self.y, None
        if s["cut"] == "counts":
            a, b, wanted = self.floats(x[:, :m], of), self.floats(y, of), np.zeros((3, m, self.n))
            for i, count in enumerate(ends):
                wanted[i, :count] = x[i, :count] @ y[i]
        elif s["cut"] == "rows":
            rows = x[0, : m // 2 + 1 if s["indexed"] else m]
            a, b, wanted = laid(self.floats(rows, of), s["a"]), self.floats(y, of), np.zeros((m, self.n))
            if s["indexed"]:
                index = self.index[:m] % len(rows)
                rows = rows[index]
            for i, end in enumerate(ends):
                wanted[begins[i] : end] = rows[begins[i] : end] @ y[i]
        elif s["cut"] == "columns":
            columns = self.x[0, :m].T  # as many columns as there are rows in the other form
            a, b, wanted = self.floats(y.transpose(0, 2, 1), of), self.floats(columns, of), np.zeros((self.n, m))
            for i, end in enumerate(ends):
                wanted[:, begins[i] : end] = y[i].T @ columns[:, begins[i] : end]
        else:
            left, right = x[0, :m].T, x[1, :m]
            a, b, wanted = self.floats(left, of), self.floats(right, of), np.zeros((3, self.k, self.k))
            for i, end in enumerate(ends):
                wanted[i] = left[:, begins[i] : end] @ right[begins[i] : end]
        return self.multiplied(s, a, b, index, ends, wanted)

    def multiplied(
        self, s: dict[str, Any], a: Any, b: Any, index: Any, ends: list[int], wanted: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        of = FLOATS[s["result"] or s["dtype"]]
        more: dict[str, Any] = {"out_dtype": of, "kernel": s["kernel"], "decomposition": s["decomposition"]}
        if index is not None:
            more["rows"] = self.tensor(index.astype(np.int32))
        if s["gate"] == "relu" and s["cut"] == "rows":
            gated = self.full((wanted.shape[0], wanted.shape[1] // 2), of)
            more["epilogue"] = Gated("relu", gated, store_preact=False)
            wanted = np.maximum(wanted[:, ::2], 0) * wanted[:, 1::2]
        elif s["into"]:
            more["out"] = self.full(wanted.shape, of)
        if s["cut"] == "counts":
            if s["into"]:
                behind = np.arange(wanted.shape[1]) >= np.array(ends)[:, None]
                wanted = np.where(behind[:, :, None], 99.0, wanted)
            with sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext():
                return grouped_matmul(a, b, counts=self.tensor(np.array(ends, np.int32)), **more), wanted
        with sim.options(arch=s["arch"]) if s["arch"] else contextlib.nullcontext():
            found = grouped_matmul(a, b, self.tensor(np.array(ends, np.int32)), **more)
        return found, wanted


class RowSums(CallsOfModels):
    """``combine_rows``."""

    choices: ClassVar = {
        "dtype": tuple(FLOATS),
        "source": ("rows", "padded", "odd", "columns", "spread"),
        "weights": ("rows", "columns"),
        "into": (False, True),
        "rows": ROWS,
    }

    def draw(self) -> None:
        self.m, self.n = self.extents((16, 24), (8, 40))

    def fill(self) -> None:
        self.x, self.factors = self.integers(self.m, self.n), self.powers(self.m // 2, 2)
        self.places = self.numbers.permutation(self.m).reshape(-1, 2)

    def call(self, **s: Any) -> tuple[Any, np.ndarray]:
        count = fewer(len(self.places), s["rows"])
        of, places, factors = FLOATS[s["dtype"]], self.places[:count], self.factors[:count]
        source, weights = laid(self.floats(self.x, of), s["source"]), laid(self.tensor(factors), s["weights"])
        out = self.full((count, self.n), of) if s["into"] else None
        found = combine_rows(source, self.tensor(places.astype(np.int32)), weights, out=out)
        return found, (self.x[places] * factors[..., None].astype(np.float64)).sum(1)


MODELS: dict[str, type[Calls]] = {
    "mixed_matmul": Mixed,
    "sparse_matmul": Sparse,
    "grouped_matmul": Groups,
    "combine_rows": RowSums,
}
