"""Small language models whose linear layers are torch.nn.functional.linear's products, or the same by ``matmul``.

    python bench/model.py [--write DIR] [--models gpt llama] [--rows train compiled prefill decode lengths autocast]

``gpt``: 12 layers, 1,024 wide, GELU, as GPT-2 has them. ``llama``: 12 layers, 1,024 wide, RMSNorm, SwiGLU, 16 query
heads in 4 groups. Weights are the same on both sides. Training is forward, backward and SGD's step. Times are wall
times of host and GPU together, in turns; medians. ``first`` is the first call in this process, which stages and
compiles kernels or reads them from the disk cache.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from figures import gpu_model, table, write_results
from torch import Tensor, nn

from tilewright.gemm import matmul
from tilewright.gemm.tuning.processes import wait_until_done

WIDTH, LAYERS, HEADS, GROUPS, VOCABULARY = 1024, 12, 16, 4, 32000
ROUNDS = 7
Linear = Callable[..., Tensor]
"""``linear(x, weight, bias, activation)``."""


def by_torch(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    y = F.linear(x, weight, bias)
    return F.gelu(y, approximate="tanh") if activation else y


def by_tilewright(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    return matmul(x, weight.mT, bias=bias, activation=activation)


class Projection(nn.Module):
    """A linear layer by whichever function it was given."""

    def __init__(self, inputs: int, outputs: int, linear: Linear, bias: bool) -> None:
        super().__init__()
        self.linear = linear
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * inputs**-0.5)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        return self.linear(x, self.weight, self.bias, activation)


class Attention(nn.Module):
    def __init__(self, linear: Linear, groups: int, bias: bool) -> None:
        super().__init__()
        self.groups, self.size = groups, WIDTH // HEADS
        self.qkv = Projection(WIDTH, (HEADS + 2 * groups) * self.size, linear, bias)
        self.out = Projection(WIDTH, WIDTH, linear, bias)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        heads = self.qkv(x).view(batch, tokens, -1, self.size).transpose(1, 2)
        q, k, v = heads.split([HEADS, self.groups, self.groups], 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.groups != HEADS)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))


class GPTFeedForward(nn.Module):
    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.up = Projection(WIDTH, 4 * WIDTH, linear, True)
        self.down = Projection(4 * WIDTH, WIDTH, linear, True)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x, "gelu_tanh"))


class LlamaFeedForward(nn.Module):
    HIDDEN = 2816

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.gate, self.up = (Projection(WIDTH, self.HIDDEN, linear, False) for _ in range(2))
        self.down = Projection(self.HIDDEN, WIDTH, linear, False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, model: str, linear: Linear) -> None:
        super().__init__()
        gpt = model == "gpt"
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH) if gpt else nn.RMSNorm(WIDTH) for _ in range(2))
        self.attention = Attention(linear, HEADS if gpt else GROUPS, gpt)
        self.feed_forward = GPTFeedForward(linear) if gpt else LlamaFeedForward(linear)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Model(nn.Module):
    def __init__(self, model: str, linear: Linear) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block(model, linear) for _ in range(LAYERS)))
        self.head = Projection(WIDTH, VOCABULARY, linear, False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


class Side:
    """One model with one kind of linear layers."""

    def __init__(self, model: str, linear: Linear, weights: dict[str, Tensor] | None, dtype: torch.dtype) -> None:
        self.model = Model(model, linear).to("cuda", dtype)
        if weights is not None:
            self.model.load_state_dict(weights)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def train(self, tokens: Tensor, run: Any = None, autocast: bool = False) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            logits = (self.model if run is None else run)(tokens)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY).float(), tokens.view(-1).roll(-1))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    @torch.no_grad()
    def infer(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.model(tokens)
        return result


def timed(run: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def draw(batch: int, tokens: int) -> Tensor:
    return torch.randint(0, VOCABULARY, (batch, tokens), device="cuda")


Runs = list[Callable[[], Any]]


def compare(runs: Runs, repeat: int = 1) -> tuple[list[float], list[float]]:
    """Milliseconds of the first call of each side, and of the median one."""
    first = [timed(run) for run in runs]
    wait_until_done()  # sizes that multiplied meanwhile are not part of the figures
    times: list[list[float]] = [[] for _ in runs]
    for round_ in range(ROUNDS + 1):
        for run, found in zip(runs, times, strict=True):
            ms = timed(lambda run=run: [run() for _ in range(repeat)]) / repeat
            if round_:
                found.append(ms)
    return first, [statistics.median(found) for found in times]


def measure(model: str, rows: list[str]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []

    def sides(dtype: torch.dtype = torch.bfloat16) -> list[Side]:
        torch.manual_seed(0)
        reference = Side(model, by_torch, None, dtype)
        return [reference, Side(model, by_tilewright, reference.model.state_dict(), dtype)]

    def note(what: str, runs: Runs, repeat: int = 1) -> None:
        first, ms = compare(runs, repeat)
        record = {"model": model, "what": what, "ms": ms[1], "torch_ms": ms[0], "ratio": ms[0] / ms[1]}
        records.append({**record, "first_ms": first[1], "torch_first_ms": first[0]})
        print(
            f"{model} {what}: {ms[1]:.2f} ms, torch {ms[0]:.2f}; first {first[1]:.0f}, torch {first[0]:.0f}", flush=True
        )

    pair = sides()
    tokens = draw(8, 1024)
    with torch.no_grad():
        exact, found = (side.infer(tokens[:1, :512]).float() for side in pair)
        error = float((found - exact).norm() / exact.norm())
        assert error < 3e-2, f"{model}: the logits differ by {error}"
        del exact, found
    if "train" in rows:
        note("training step, 8 x 1,024, eager", [lambda s=side: s.train(tokens) for side in pair], 3)
    if "compiled" in rows:
        compiled = [torch.compile(side.model) for side in pair]
        runs: Runs = [lambda s=s, c=c: s.train(tokens, c) for s, c in zip(pair, compiled, strict=True)]
        note("training step, 8 x 1,024, torch.compile", runs, 3)
    if "prefill" in rows:
        for shape in ((8, 1024), (1, 512)):
            given = draw(*shape)
            note(f"inference {shape[0]} x {shape[1]}", [lambda s=s, g=given: s.infer(g) for s in pair], 3)
    if "decode" in rows:
        for batch in (1, 32):
            given = draw(batch, 1)
            note(f"decode {batch} x 1", [lambda s=s, g=given: s.infer(g) for s in pair], 20)
    if "lengths" in rows:
        lengths = [draw(1, n) for n in range(1, 200)]
        note("prefills of 1, 2, ... 199 tokens", [lambda s=s: [s.infer(g) for g in lengths] for s in pair])
    if "autocast" in rows:
        wide = sides(torch.float32)
        note("training step, autocast", [lambda s=s: s.train(tokens, autocast=True) for s in wide], 2)
    return records


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--models", nargs="*", default=["gpt", "llama"], choices=["gpt", "llama"])
    names = ["train", "compiled", "prefill", "decode", "lengths", "autocast"]
    parser.add_argument("--rows", nargs="*", default=names, choices=names)
    args = parser.parse_args()
    records = [record for model in args.models for record in measure(model, args.rows)]
    rows = [(r["model"], r["what"], *(f"{r[k]:.2f}" for k in ("ms", "torch_ms", "ratio", "first_ms"))) for r in records]
    table("models", rows, ("model", "what", "ms", "torch ms", "ratio", "first ms"))
    if args.write:
        print(write_results("model", gpu_model(), records, args.write))


if __name__ == "__main__":
    main()
