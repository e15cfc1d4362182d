"""What comes back from one trial, and how it travels: as text and numbers, no objects.

    header (JSON, one line) · numbers of all arrays (float64, little-endian)

The judge reads this from a process that it does not trust. Nothing in it is ever run,
and shapes must add up to the numbers that are there.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
MAX_BYTES = 1 << 28  # of one message
PARTS = ("dual", "weights", "coefficients", "features")
POINTS = ("given", "last", "made")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point as it was given; without a dual, α is that of the SVM at the weights."""

    dual: Array | None
    weights: Array | None = None
    coefficients: Array | None = None
    features: Array | None = None  # feature weights, of kernels that are factors
    bias: Any = None  # b, where it was given; otherwise the best one is taken


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of one trial."""

    ended: str  # returned, refused, raised, bad answer, hangs, died, or of the loop
    words: str = ""
    given: Candidate | None = None  # as the solver gave it: of iterates the best,
    last: Candidate | None = None  # and the last
    made: Candidate | None = None  # what the loop made of all iterates
    gaps: tuple[float, ...] = ()  # certified along the run
    earlier: list[Array] = field(default_factory=list)  # weights before the last
    tol: float = math.nan  # what it was solved to: asked for, or promised
    inputs: tuple[str, ...] = ()  # hashes of the problem after the run
    seconds: float = 0.0  # on the clock of the judge


def pack(answer: Answer) -> bytes:
    """An answer as bytes."""
    arrays: dict[str, Any] = {"gaps": np.array(answer.gaps, float)}
    for point in POINTS:
        for part in PARTS:
            array = getattr(getattr(answer, point), part, None)
            if array is not None:
                arrays[f"{point}.{part}"] = array
    arrays |= {f"earlier.{k}": array for k, array in enumerate(answer.earlier)}
    head = {
        "ended": answer.ended,
        "words": answer.words[:2000],
        "tol": answer.tol,
        "inputs": answer.inputs,
        "shapes": {name: np.shape(array) for name, array in arrays.items()},
    }
    numbers = (np.ascontiguousarray(a, "<f8").tobytes() for a in arrays.values())
    return json.dumps(head).encode() + b"\n" + b"".join(numbers)


def unpack(message: bytes) -> Answer:
    """The answer in a message; ValueError for anything else."""
    try:
        text, _, numbers = message.partition(b"\n")
        head = json.loads(text)
        arrays = _arrays(head["shapes"], numbers)
        return Answer(
            ended=str(head["ended"]),
            words=str(head["words"]),
            given=_point("given", arrays),
            last=_point("last", arrays),
            made=_point("made", arrays),
            gaps=tuple(arrays["gaps"].ravel().tolist()),
            earlier=[a for name, a in arrays.items() if name.startswith("earlier.")],
            tol=float(head["tol"]),
            inputs=tuple(map(str, head["inputs"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"what came back is no answer ({error!r:.80})") from None


def _arrays(shapes: dict[str, list[int]], numbers: bytes) -> dict[str, Array]:
    flat, found, begun = np.frombuffer(numbers, "<f8"), {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        if not all(isinstance(k, int) and k >= 0 for k in shape):
            raise ValueError("a shape that is none")
        found[name] = flat[begun : begun + size].reshape(shape).astype(float)
        begun += size
    if begun != len(flat):
        raise ValueError("numbers that belong to no array")
    return found


def _point(name: str, arrays: dict[str, Array]) -> Candidate | None:
    parts = [arrays.get(f"{name}.{part}") for part in PARTS]
    return None if all(part is None for part in parts) else Candidate(*parts)
