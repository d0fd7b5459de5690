"""Coverage-guided fuzzing of the decoders, by Atheris: `python -m tests.security.fuzz.coverage TARGET --runs 10000`.

It begins with the corpus that the repository keeps, changes inputs, and keeps for this run those that reach new code.
The targets are those of the seeded runs, so what it finds is written and replayed in the same way. An input that is
worth keeping is put into `corpus/TARGET` by hand, under a name that says what it is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from typing import Final

import atheris  # type: ignore[import-untyped] # it has none

from tests.security.fuzz.decoders import CORPUS, DECODERS

LONGEST: Final = 4096
"""Bytes of an input: what decoders do is done with less."""


def main(arguments: list[str] | None = None) -> None:
    """Fuzz one target; ends the process, with something else than 0 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz.coverage")
    parser.add_argument("target", choices=DECODERS)
    parser.add_argument("--runs", type=int, default=10_000, help="inputs, the corpus included")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with atheris.instrument_imports(include=["trainplane", "yaml"]):
        from tests.security.fuzz.findings import attempt  # noqa: PLC0415 imported to be instrumented
        from tests.security.fuzz.targets.table import TARGETS  # noqa: PLC0415 as above
    target = TARGETS[options.target]()

    def one(data: bytes) -> None:
        finding = attempt(target, data)[1]
        if finding is not None:
            finding.save()
            raise RuntimeError(str(finding))

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        settings = {
            "seed": options.seed,
            "max_len": LONGEST,
            "runs": options.runs,
            "timeout": 60,
            "print_final_stats": 1,
            "artifact_prefix": f"{folder}/",
        }
        flags = [f"-{name}={value}" for name, value in settings.items()]
        atheris.Setup([sys.argv[0], *flags, folder, str(CORPUS / options.target)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
