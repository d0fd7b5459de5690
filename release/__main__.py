"""`python -m release`: build a release, verify one, make a key; docs/releasing.md says when."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release import signing
from release.build import PARTS, Made, build
from release.errors import ReleaseError
from release.source import REPOSITORY
from release.verify import verify


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked; 1 if it cannot be done, with the reasons, 2 for wrong usage."""
    given = _parser().parse_args(arguments)
    try:
        given.run(given)
    except ReleaseError as error:
        for problem in error.problems:
            sys.stderr.write(f"release: {problem}\n")
        return 1
    return 0


def _build(given: argparse.Namespace) -> None:
    required = frozenset(PARTS if "all" in given.require else given.require)
    made = build(given.output.resolve(), given.tools.resolve(), given.key, given.base, required)
    sys.stdout.write(told(made, given.output, rehearsed=given.key is None))


def told(made: Made, output: Path, *, rehearsed: bool) -> str:
    """Return what was made, and what not."""
    source = made.source
    lines = [f"trainplane {source.version}, commit {source.commit[:12]}, {source.tag or 'no tag: a rehearsal'}"]
    lines += [f"  {(output / name).stat().st_size:>11,}  {name}" for name in made.sums]
    for audit in made.audits:
        lines.append(f"audited requirements/{audit.name}.txt: {audit.judged} libraries, {audit.unknown} not known")
        lines += [f"  {finding}" for finding in audit.findings]
    lines += [f"NOT MADE: {name}: {why}" for name, why in made.left_out.items()]
    lines += ["signed with a key that this machine made: for rehearsals; KEY=FILE signs with yours"] * rehearsed
    return "\n".join(lines) + "\n"


def _verify(given: argparse.Namespace) -> None:
    try:
        key = given.key.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{given.key}: cannot be read: {error.strerror}") from error
    sys.stdout.write(f"{len(verify(given.folder, key))} files are what the key signed\n")


def _key(given: argparse.Namespace) -> None:
    try:
        key = signing.make_key(given.file)
    except OSError as error:
        raise ReleaseError(f"{given.file}: cannot be made: {error.strerror}") from error
    sys.stdout.write(signing.public_pem(key).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m release", description="Make and verify what is published.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = commands.add_parser("build", help="leave a release of the checked out commit in a folder")
    one.add_argument("--output", type=Path, default=REPOSITORY / "dist", help="the folder; it is emptied first")
    one.add_argument("--tools", type=Path, default=REPOSITORY / "build/release-tools/bin", help=argparse.SUPPRESS)
    one.add_argument("--key", type=Path, help="the key to sign with (default: one for rehearsals)")
    one.add_argument("--base", default="", help="image to build ours on, by digest (default: the lab's)")
    one.add_argument("--require", nargs="*", choices=(*PARTS, "all"), default=[], help="fail where it cannot be made")
    one.set_defaults(run=_build)
    one = commands.add_parser("verify", help="whether a folder is what a key signed; asks no network")
    one.add_argument("folder", type=Path)
    one.add_argument("--key", type=Path, required=True, help="the public key, from a place that you trust")
    one.set_defaults(run=_verify)
    one = commands.add_parser("key", help="make a key and print its public half")
    one.add_argument("file", type=Path)
    one.set_defaults(run=_key)
    return parser


if __name__ == "__main__":
    sys.exit(main())
