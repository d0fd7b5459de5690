"""Make a release: every part in turn, then its sums, signature and provenance, and verify what was made."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from release import audit, chart, checksums, image, packages, provenance, sbom, signing, source
from release.errors import MissingToolError, ReleaseError
from release.order import Order
from release.verify import BESIDE, PUBLIC_KEY, SIGNATURE, verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from release.source import Source

T = TypeVar("T")
PARTS = ("chart", "image", "sbom", "audit")
"""What may be left out where it cannot be made, and can be required."""
WORK = source.REPOSITORY / "build/release"


@dataclass
class Made:
    """What was made, and what not and why; kept as build/release/made.json."""

    source: Source
    left_out: dict[str, str] = field(default_factory=dict)
    images: dict[str, Any] = field(default_factory=dict)
    """Name, digest and megabytes, by program."""
    audits: list[audit.Audit] = field(default_factory=list)
    sums: dict[str, str] = field(default_factory=dict)

    def try_part(self, name: str, make: Callable[[], T]) -> T | None:
        """Make a part; where that cannot be done here, note why."""
        try:
            return make()
        except MissingToolError as error:
            self.left_out[name] = str(error)
            return None


def build(output: Path, tools: Path, key_file: Path | None, base: str, required: frozenset[str]) -> Made:
    """Leave a release in `output`, which is emptied first.

    Raises:
        ReleaseError: a part could not be made that is required, or another could not be made at all.
    """
    started = time.time()
    made = Made(source.read())
    _only_a_release(output)
    work = WORK / "work"
    for emptied in (output, work):
        shutil.rmtree(emptied, ignore_errors=True)
        emptied.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        made.source.export(tree)
        _parts(made, Order(tree, work, output, tools, made.source.epoch, made.source.version), base)
        materials = checksums.of((tree / "requirements").glob("*.txt"))
    if missing := required & made.left_out.keys():
        raise ReleaseError(*(f"{name} is required: {made.left_out[name]}" for name in sorted(missing)))
    made.sums = checksums.of(output.iterdir())
    _sign(made, output, key_file, {f"requirements/{name}": one for name, one in materials.items()}, started)
    (WORK / "made.json").write_text(json.dumps(asdict(made), indent=2) + "\n")
    return made


def _only_a_release(output: Path) -> None:
    """Refuse to empty a folder that has anything but an earlier release in it."""
    there = [path.name for path in output.iterdir()] if output.is_dir() else []
    others = [name for name in there if not name.startswith("trainplane-") and name not in BESIDE]
    if others:
        raise ReleaseError(f"{output}: would be emptied, and has {others[0]!r} in it: name another folder")


def _parts(made: Made, order: Order, base: str) -> None:
    packages.build(order.tree, order.output, order.epoch, "sdist", "wheel")
    made.try_part("chart", lambda: chart.build(order))
    made.images = made.try_part("image", lambda: image.build(order, base)) or {}
    made.try_part("sbom", lambda: sbom.build(order))
    made.audits = made.try_part("audit", lambda: audit.run(order.tree, order.tools)) or []


def _sign(made: Made, output: Path, key_file: Path | None, materials: dict[str, str], started: float) -> None:
    """Sign the sums and the provenance; without a key by one that this machine makes and nobody should trust."""
    own = WORK / "rehearsal.key"
    if key_file:
        key = signing.private_key(key_file)
    else:
        key = signing.private_key(own) if own.exists() else signing.make_key(own)
    content = checksums.text(made.sums).encode()
    (output / checksums.NAME).write_bytes(content)
    (output / SIGNATURE).write_text(signing.sign(content, key) + "\n")
    (output / PUBLIC_KEY).write_bytes(signing.public_pem(key))
    statement = provenance.statement(made.sums, made.source, materials, started, time.time())
    (output / provenance.NAME).write_text(signing.seal(statement, key))
    verify(output, signing.public_pem(key))
