"""Small decoders: quantities, label selectors, conversion of older generations, JSON patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz import documents
from tests.security.fuzz.mutations import ODD_NUMBERS, ODD_TEXTS, Mutator, copied, encode
from tests.security.fuzz.target import BrokenPromiseError, Target
from trainplane.admission.conversion import convert
from trainplane.admission.jsonpatch import json_patch
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import Quantity, parse
from trainplane.kube.testing.patches import json_patch as patched

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

_SUFFIXES: Final = (
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-2",
    "e999",
)


class Quantities(Target):
    """Amounts of resources: text in, text out, and the same amount."""

    name: ClassVar[str] = "quantities"
    cases: ClassVar[int] = 150_000

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        kind = mutator.below(4)
        if kind == 0:
            return encode(mutator.pick(ODD_TEXTS))
        if kind == 1:
            return encode(mutator.pick(ODD_NUMBERS))
        text = str(mutator.below(10 ** mutator.pick((1, 3, 9, 18, 30))))
        if mutator.chance(0.4):
            text += "." + str(mutator.below(10 ** mutator.pick((1, 3, 12))))
        text = mutator.pick(("", "", "-", "+")) + text + mutator.pick(_SUFFIXES)
        return encode(mutator.text(text) if kind == 2 else text)

    def run(self, data: bytes) -> str:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            value = data.decode("latin-1")
        try:
            amount = Quantity.of(value)
        except QuantityError:
            return "refused"
        text = str(amount)
        if len(text) < 256 and (parse(text) != amount or parse(amount.canonical()) != amount):
            raise BrokenPromiseError(f"{value!r} is written as {text}, which is another amount")
        (amount + amount, amount * 3, -amount, float(amount) if abs(amount.nanos) < 10**300 else 0, hash(amount))
        amount.value()
        amount.milli_value()
        return "read"

    def seeds(self) -> Iterable[bytes]:
        """Return a few forms."""
        return (b'"500m"', b'"1.5Gi"', b"2", b'"1e3"', b'"-0.5k"', b'".5"')


_SELECTORS: Final = (
    {"matchLabels": {"a": "b"}},
    {
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["b", "c"]},
            {"key": "n", "operator": "Gt", "values": ["1"]},
        ]
    },
)
_POD: Final = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        }
    },
}


class Generations(Target):
    """TrainJobs of any generation turned into today's form, twice as once; and patches that give exactly it."""

    name: ClassVar[str] = "generations"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        self._seeds = [msgspec.json.encode(job) for job in documents.train_jobs()]

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        return encode(mutator.tree(msgspec.json.decode(mutator.pick(self._seeds)), mutator.few(6)))

    def run(self, data: bytes) -> str:
        try:
            job: Any = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no JSON"
        if not isinstance(job, dict):
            return "no object"
        before = copied(job)
        turned = convert(job)
        if job != before:
            raise BrokenPromiseError("what was sent is changed in place")
        if convert(turned.tree).tree != turned.tree:
            raise BrokenPromiseError("what was turned is turned again")
        if any(len(warning) > 256 or not warning.isascii() for warning in turned.warnings):
            raise BrokenPromiseError("a warning that the API server cuts")
        if patched(job, json_patch(job, turned.tree)) != turned.tree:
            raise BrokenPromiseError("the patch does not give what was turned")
        return "turned" if turned.tree is not job else "today's"

    def seeds(self) -> Iterable[bytes]:
        """Return the TrainJobs that are shown."""
        return self._seeds
