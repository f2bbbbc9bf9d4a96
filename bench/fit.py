"""Fits the constants of the Hopper kernels' model of time (tilewright/gemm/family/hopper_cost.py) to timings.

    python bench/timings.py --write DIR ...                     # on GPUs, as often as one likes
    python bench/fit.py                                         # how well the constants suit the timings in results/
    python bench/fit.py DIR/*.json --seconds 120                # a fit to others, or to these and to those in results/
    python bench/fit.py DIR/*.json --keep results/timings.json  # the timings of several files as one

What is made small: how much slower than the fastest option the model's choice is (softly: options that the model takes
to be nearly as fast count, too), and, so that options that were not timed do not look too good, the error of the times
themselves, with little weight for options that are far from the best. Constants stay near what the hardware suggests
(``NEAR``). The search changes one constant at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.gemm.choice.choose import KernelOptions
from tilewright.gemm.choice.registry import kernels
from tilewright.gemm.family import hopper_cost
from tilewright.gemm.family.hopper_cost import HopperModel
from tilewright.gemm.family.plan_options import Limits
from tilewright.gemm.tuning.candidate import Candidate

TIMINGS = Path(__file__).parent / "results" / "timings_h200_2026-11-22.json"
H200: Limits = (132, 232448)
FITTED = (
    "FLOPS_PER_US", "INSTRUCTION", "TURNS", "ALONE", "BYTES_PER_US", "CROWD", "MISALIGNED", "SHARERS", "MEMORY_PER_US",
    "L2_BYTES", "AGAIN", "LATENCY", "FURTHER", "PART", "STORE", "PARTIAL", "TURN", "TURN_STORE", "LAST_PART", "SHARED",
    "SHARING", "PEER_ELEMENT", "JOINING", "JOIN_ELEMENT", "SLICING", "SLICE_ELEMENT", "CLUSTER", "HALF_FREE",
    "SOME_FREE",
)  # fmt: skip
OTHERS = {"launch": 0.8, "memory": 6e6, "power": 9e8}
"""What all options of a product have in common: microseconds, bytes a microsecond, FLOPs a microsecond."""
NEAR = {
    "FLOPS_PER_US": 7.83e6,
    "INSTRUCTION": 37.0,
    "TURNS": 1.07,
    "ALONE": 1.125,
    "BYTES_PER_US": 9e4,
    "CROWD": 2.0,
    "MISALIGNED": 1.4,
    "SHARERS": 0.7,
    "MEMORY_PER_US": 4.6e6,
    "LATENCY": 0.5,
    "PART": 0.06,
    "STORE": 8e-5,
    "TURN": 0.2,
    "CLUSTER": 0.08,
    "memory": 4.6e6,
    "power": 8e8,
}
LEAST = {"SHARED": 1.001, "TURNS": 1.001, "ALONE": 1.001}
SOFT, CLOSE, ERROR, FAR = 0.03, 0.25, 2.0, 0.004  # in logarithms: of the soft choice, of the weights of errors; weights

Shape = tuple[int, int, int]
Timings = dict[Shape, dict[int, float]]
"""Microseconds by product and number of the option."""


@dataclass(frozen=True)
class Fit:
    """How well constants suit timings: what the search makes small, the geometric mean of the choice's speed of the
    best timed option's, and the error of the times of one product beside each other."""

    loss: float
    choice: float
    error: float

    def __str__(self) -> str:
        return f"loss {self.loss:.5f}, the choice reaches {self.choice:.4f} of the best, times within {self.error:.3f}"


class Problem:
    """Timed options of the products, in one vector."""

    def __init__(self, timings: Timings, options: KernelOptions) -> None:
        self.options = options
        self.products = [(shape, np.array(list(us))) for shape, us in timings.items()]
        self.us = np.log([value for us in timings.values() for value in us.values()])
        lengths = [len(us) for us in timings.values()]
        self.first = np.cumsum([0, *lengths[:-1]])
        self.of = np.repeat(np.arange(len(lengths)), lengths)
        self.behind = self.us - np.minimum.reduceat(self.us, self.first)[self.of]
        self.weights = np.exp(-self.behind / CLOSE)
        self.weights /= np.add.reduceat(self.weights, self.first)[self.of]
        extents = np.array([shape for shape, _ in self.products], float)[self.of]
        self.flops = 2 * extents.prod(axis=1)
        m, n, k = extents.T
        self.bytes = 2 * (m * k + n * k + m * n)

    def predicted(self, constants: dict[str, float]) -> Any:
        """Logarithms of microseconds by the model with these constants."""
        for name in FITTED:
            setattr(hopper_cost, name, constants[name])
        model = HopperModel(self.options.plan_options, H200)
        us = np.concatenate([model.times((*shape, 1))[found] for shape, found in self.products]).astype(float)
        us = np.minimum(us, 1e6) + constants["launch"]
        memory = self.bytes / constants["memory"] + constants["launch"] / 2
        return np.log(us**10 + memory**10 + (self.flops / constants["power"]) ** 10) / 10

    def fit(self, constants: dict[str, float]) -> Fit:
        us = self.predicted(constants)
        least = np.minimum.reduceat(us, self.first)[self.of]
        taken = np.exp(-(us - least) / SOFT)
        slower = np.add.reduceat(taken * self.behind, self.first) / np.add.reduceat(taken, self.first)
        error = us - self.us
        error -= 0.7 * np.add.reduceat(self.weights * error, self.first)[self.of]
        size = abs(error)
        bent = np.add.reduceat(self.weights * np.where(size < 0.1, size**2 / 2, 0.1 * (size - 0.05)), self.first).mean()
        far = sum(math.log(constants[name] / value) ** 2 for name, value in NEAR.items())
        chosen = [self.behind[part][us[part].argmin()] for part in np.split(np.arange(us.size), self.first[1:])]
        loss = float(slower.mean() + ERROR * bent + FAR * far)
        return Fit(loss, math.exp(-float(np.mean(chosen))), math.sqrt(2 * bent))


def search(problem: Problem, constants: dict[str, float], seconds: float, seed: int = 0) -> dict[str, float]:
    """Constants with a smaller loss: each changed by a factor in turn, which grows where that helped."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    best, steps = problem.fit(constants).loss, dict.fromkeys(constants, 0.2)
    while time.monotonic() < end and max(steps.values()) > 0.002:
        for name in rng.sample(list(constants), len(constants)):
            for sign in (1, -1):
                value = constants[name] * math.exp(sign * steps[name])
                changed = constants | {name: max(LEAST.get(name, 0.0), value)}
                if (loss := problem.fit(changed).loss) < best - 1e-7:
                    constants, best = changed, loss
                    steps[name] = min(0.6, 1.7 * steps[name])
                    break
            else:
                steps[name] *= 0.6
    return constants


def load(paths: Iterable[Path], options: KernelOptions) -> Timings:
    """The timings of files of bench/timings.py and of ``--keep``. A product that was timed on several GPUs: their
    speeds made equal by the options that they share."""
    numbers = {
        Candidate.of(options.entries[id(way.config)], None).size + (way.parts, way.shared_reduction): number
        for number, way in enumerate(options.plan_options)
    }
    found: Timings = {}
    for path in paths:
        read: Timings = {}
        document = json.loads(path.read_text(encoding="utf-8"))
        listed = document.get("options")
        for one in document["records"]:
            us = read.setdefault(tuple(one["mnk"]), {})
            in_list = () if listed is None else ((listed[int(place)], value) for place, value in one["us"].items())
            for option, value in in_list if listed is not None else ((one, one["us"]),):
                candidate = Candidate.from_json(option)
                us[numbers[candidate.size + (int(candidate.shares is None), candidate.together)]] = value
        for shape, us in read.items():
            known = found.setdefault(shape, {})
            both = [us[number] / known[number] for number in us if number in known]
            faster = float(np.median(both)) if both else 1.0
            for number, value in us.items():
                here = value / faster
                known[number] = math.sqrt(known[number] * here) if number in known else here
    return found


def keep(timings: Timings, options: KernelOptions, path: Path) -> None:
    """One file: the options once, and for each product microseconds by their place in that list."""
    used = sorted({number for us in timings.values() for number in us})
    listed = []
    for number in used:
        way = options.plan_options[number]
        one = Candidate.of(options.entries[id(way.config)], None).to_json()
        listed.append(one | {"shares": None if way.parts else [0, 0], "together": way.shared_reduction})
    place = {number: str(i) for i, number in enumerate(used)}
    records = [
        {"mnk": list(shape), "us": {place[number]: round(value, 3) for number, value in us.items()}}
        for shape, us in timings.items()
    ]
    head = json.dumps({"gpu": "NVIDIA H200", "dtype": "float16"})[:-1]
    parts = [
        f'"{name}": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]"
        for name, rows in (("options", listed), ("records", records))
    ]
    path.write_text(",\n".join([head, *parts]) + "}\n", encoding="utf-8")


def constants_now() -> dict[str, float]:
    return {name: float(getattr(hopper_cost, name)) for name in FITTED} | OTHERS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path, default=[TIMINGS])
    parser.add_argument("--seconds", type=float, default=0.0, help="of the search; 0: only show the fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write the timings of all files as one")
    args = parser.parse_args()
    options = KernelOptions.of(kernels()["hopper_f16"], H200)
    timings = load(args.files, options)
    if args.keep:
        keep(timings, options, args.keep)
    problem = Problem(timings, options)
    print(f"{sum(map(len, timings.values()))} timings of {len(timings)} products")
    constants = constants_now()
    print(problem.fit(constants))
    if args.seconds:
        constants = search(problem, constants, args.seconds, args.seed)
        print(problem.fit(constants))
        print("\n".join(f"{name} = {value:.3g}" for name, value in constants.items()))


if __name__ == "__main__":
    main()
