"""Quantities as the real API server reads, writes, adds and compares them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.api.conftest import wait_established
from tests.size import sized
from trainplane.api.errors import QuantityError
from trainplane.api.quantity import parse

if TYPE_CHECKING:
    from tests.integration.api.conftest import Server

DEVICES, CAPACITIES = 40, 25
ROUNDS = sized(2, full=20)

SUFFIXES = [
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
    "e0",
    "e3",
    "E-3",
    "e+2",
]

CORNERS = [
    "0", "00", "-0", "+0", "1", "+1", "007", "1.", ".5", "0.5", "1.5", "1.50", "1.500", "1.5000", "1000m", "1500m",
    "0.1n", "1n", "999n", "1000n", "-0.1n", "1Ki", "8Ki", "1023", "1024", "1023Ki", "1024Ki", "1.5Ki", "0.1Ki", "0.5Gi",
    "512Ei", "7Ei", "8Ei", "9223372036854775807", "9223372036854775808", "9999999999999999999", "-8Ei", "-9Ei",
    "1e3", "1E3", "1.5e3", "1500e-3", "12e-10", "1e-9", "1e18", "999E", "0.000000001Ki", "1048576Ki",
    "100000000000000Ki",
    "123456789012345678", "1234567890123456789", "1.23456789012345678", "0.0000000001", "-1.0000000001", "0Ki", "-0Ki",
]  # fmt: skip

NO_QUANTITIES = [
    "", " ", "abc", "1 ", " 1", "1Kii", "1ki", "1K", "1mi", "--1", "+-1", "1..2", "1.2.3", "1e", "1e1.5", "e-10", "Ei",
    "Pi", "1,5", "0x10", "1_000", "٣", "1i", "1ee3", "1e3k", "1-", "1+", "-Ei", "NaN", "Inf", "1e99999999999999999999",
]  # fmt: skip

WEIRD_BUT_RIGHT = ["+", "-", ".", "Ki", "m", "-m", ".Ki", "e5", "+.", "1.Ki"]


def random_text(rng: random.Random) -> str:
    whole = str(rng.randint(0, 10 ** rng.randint(1, 16)))
    fraction = "." + "".join(rng.choice("0012345") for _ in range(rng.randint(0, 12))) if rng.random() < 0.4 else ""
    sign = rng.choice(("", "", "", "-", "+"))
    return sign + whole + fraction + rng.choice(SUFFIXES)


def printable(text: str) -> bool:
    """Return whether the API server can write the amount at all: past its last suffix it drops the magnitude."""
    return abs(parse(text)) < parse("999E")


def slice_of(texts: list[str]) -> dict[str, Any]:
    """Return an object with many quantities that validation does not look at: the capacities of devices."""
    devices = [
        {"name": f"d{d}", "capacity": {f"c{c}": {"value": texts[d * CAPACITIES + c]} for c in range(CAPACITIES)}}
        for d in range(DEVICES)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "quantities"},
        "spec": {
            "driver": "quantities.example.test",
            "nodeName": "node",
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_reads_and_writes_as_the_server(server: Server, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 no secret
    texts = [text for text in CORNERS if printable(text)]
    while len(texts) < DEVICES * CAPACITIES:
        text = random_text(rng)
        if printable(text):
            texts.append(text)

    devices = server.stored(slice_of(texts))["spec"]["devices"]

    answers = [devices[i // CAPACITIES]["capacity"][f"c{i % CAPACITIES}"]["value"] for i in range(len(texts))]
    assert {text: str(parse(text)) for text in texts} == dict(zip(texts, answers, strict=True))


JUDGE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sums.quantity.example.test}
spec:
  group: quantity.example.test
  scope: Cluster
  names: {kind: Sum, listKind: SumList, plural: sums, singular: sum}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          texts:
            type: array
            maxItems: 300
            items:
              type: object
              properties: {text: {type: string, maxLength: 64}, valid: {type: boolean}}
              x-kubernetes-validations:
              - {rule: "isQuantity(self.text) == self.valid", messageExpression: "'disagrees on ' + self.text"}
          sums:
            type: array
            maxItems: 300
            items:
              type: object
              properties:
                a: {type: string, maxLength: 64}
                b: {type: string, maxLength: 64}
                sum: {type: string, maxLength: 64}
                difference: {type: string, maxLength: 64}
                order: {type: integer}
              x-kubernetes-validations:
              - rule: "quantity(self.a).add(quantity(self.b)).compareTo(quantity(self.sum)) == 0"
                messageExpression: "self.a + ' + ' + self.b + ' is not ' + self.sum"
              - rule: "quantity(self.a).sub(quantity(self.b)).compareTo(quantity(self.difference)) == 0"
                messageExpression: "self.a + ' - ' + self.b + ' is not ' + self.difference"
              - rule: "quantity(self.a).compareTo(quantity(self.b)) == self.order"
                messageExpression: "self.a + ' and ' + self.b + ' compare otherwise'"
"""


@pytest.fixture(scope="module")
def judge(server: Server) -> Server:
    """Return the API server with a kind whose rules judge quantities by the server's own arithmetic."""
    server.cluster.kubectl("apply", "--filename=-", stdin=JUDGE)
    wait_established(server.cluster, "crd/sums.quantity.example.test")
    return server


def sums_of(**content: Any) -> dict[str, Any]:
    return {"apiVersion": "quantity.example.test/v1", "kind": "Sum", "metadata": {"name": "sum"}, **content}


def test_agrees_on_what_is_a_quantity(judge: Server) -> None:
    texts = [*CORNERS, *NO_QUANTITIES, *WEIRD_BUT_RIGHT]
    answer = judge.create(sums_of(texts=[{"text": text, "valid": is_quantity(text)} for text in texts]))
    assert answer.code == 0, answer.output


def test_agrees_on_random_texts(judge: Server) -> None:
    rng = random.Random(7)  # noqa: S311 no secret
    alphabet = "0015.eEinumkKMGTP+-"
    texts = ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 6))) for _ in range(3000)]
    texts = [text for text in texts if not has_large_exponent(text)]
    for start in range(0, len(texts), 300):
        chosen = texts[start : start + 300]
        answer = judge.create(sums_of(texts=[{"text": text, "valid": is_quantity(text)} for text in chosen]))
        assert answer.code == 0, answer.output


def has_large_exponent(text: str) -> bool:
    try:
        parse(text)
    except QuantityError as error:
        return "larger than any resource" in str(error)
    return False


def is_quantity(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


def test_adds_subtracts_and_compares_as_the_server(judge: Server) -> None:
    rng = random.Random(11)  # noqa: S311 no secret
    texts = [text for text in (random_text(rng) for _ in range(2000)) if printable(text)][:600]
    sums = []
    for left, right in zip(texts[::2], texts[1::2], strict=True):
        a, b = parse(left), parse(right)
        sums.append({"a": left, "b": right, "sum": str(a + b), "difference": str(a - b), "order": (a > b) - (a < b)})
    answer = judge.create(sums_of(sums=sums))
    assert answer.code == 0, answer.output


def test_the_judge_can_refuse(judge: Server) -> None:
    wrong = {"a": "1", "b": "1", "sum": "3", "difference": "0", "order": 0}
    assert "1 + 1 is not 3" in judge.create(sums_of(sums=[wrong])).output
    assert "disagrees on 1Kii" in judge.create(sums_of(texts=[{"text": "1Kii", "valid": True}])).output
