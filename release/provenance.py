"""How the files of a release came about: an in-toto statement with SLSA's provenance, version 1."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from release.errors import UntrustedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from release.source import Source

NAME: Final = "provenance.intoto.jsonl"
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "https://trainplane.dev/release/v1"
"""`make release` of a commit, as docs/releasing.md says it."""
BUILDER: Final = "https://trainplane.dev/release/maintainer"
"""A machine of whoever holds the key. The public workflow's statement is the forge's own and names the workflow."""


def statement(
    sums: Mapping[str, str], source: Source, materials: Mapping[str, str], started: float, finished: float
) -> bytes:
    """Return the statement: which files were made, of which commit, with which lists of requirements, when."""
    return json.dumps(
        {
            "_type": STATEMENT,
            "subject": [{"name": name, "digest": {"sha256": value}} for name, value in sums.items()],
            "predicateType": PREDICATE,
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {"version": source.version, "tag": source.tag},
                    "internalParameters": {"sourceDateEpoch": source.epoch},
                    "resolvedDependencies": [
                        {"name": "trainplane", "digest": {"gitCommit": source.commit}},
                        *({"name": name, "digest": {"sha256": value}} for name, value in materials.items()),
                    ],
                },
                "runDetails": {
                    "builder": {"id": BUILDER},
                    "metadata": {"startedOn": _time(started), "finishedOn": _time(finished)},
                },
            },
        },
        separators=(",", ":"),
    ).encode()


def subjects(payload: bytes) -> dict[str, str]:
    """Return the files that a statement speaks of, with their digests.

    Raises:
        UntrustedError: it is no such statement.
    """
    try:
        tree: Any = json.loads(payload)
        kinds = (tree["_type"], tree["predicateType"], tree["predicate"]["buildDefinition"]["buildType"])
        found = {str(one["name"]): str(one["digest"]["sha256"]) for one in tree["subject"]}
        repeated = len(found) != len(tree["subject"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UntrustedError(f"{NAME}: is no in-toto statement with SLSA provenance") from error
    if kinds != (STATEMENT, PREDICATE, BUILD_TYPE) or repeated:
        raise UntrustedError(f"{NAME}: is no statement of `make release`, or names a file twice")
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
