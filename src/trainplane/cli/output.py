"""Text for people: marks, wrapped lines, tables, differences; JSON and YAML for programs.

Colours only on a terminal, and never with NO_COLOR set.

Much of the text was written by others: names, messages, runtimes of workers. Characters by which a terminal is steered
are shown as what they are, so that nobody repaints an admin's screen.
"""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing import TextIO

    from trainplane.client.display.tables import Table

_CODES: Final = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
_STATES: Final = {
    "Running": "cyan",
    "Complete": "green",
    "Succeeded": "green",
    "Suspended": "yellow",
    "Warning": "yellow",
    "Failed": "red",
}
"""Words of a table that have a colour."""
_NARROWEST: Final = 60
_WIDEST: Final = 120
"""Columns: lines longer than that are hard to read, whatever the terminal has."""
_UNBOUNDED: Final = 1 << 16
"""Columns of a file or a pipe: each row of a table is a line there, for grep and awk."""


class Output:
    """Where lines are printed."""

    def __init__(self, stream: TextIO, *, width: int | None = None, colours: bool | None = None) -> None:
        self._stream = stream
        self._colours = stream.isatty() and "NO_COLOR" not in os.environ if colours is None else colours
        columns = shutil.get_terminal_size((_WIDEST, 0)).columns if width is None else width
        self._width = min(max(columns, _NARROWEST), _WIDEST)
        self._table_width = columns if width or stream.isatty() else _UNBOUNDED

    def json(self, tree: object) -> None:
        """Print data for programs."""
        self._write(json.dumps(tree, indent=2))

    def yaml(self, *trees: object) -> None:
        """Print data for kubectl, a document for each."""
        self._stream.write("---\n".join(map(yaml_text, trees)))

    def table(self, table: Table) -> None:
        """Print a table: its last column wrapped on a terminal, each row in a line elsewhere."""
        from trainplane.client.display.text import lay_out  # noqa: PLC0415 heavy

        if table.rows:
            self._stream.write(lay_out(table, self._table_width, paint=self._state) + "\n")

    def line(self, text: str, *, colour: str = "", bold: bool = False, after: str = "") -> None:
        """Print a line as it is; `after` follows it without colour."""
        self._write(self._painted(text, colour, bold=bold) + tame(after))

    def heading(self, text: str) -> None:
        """Print what the lines below are about, after an empty line."""
        self._write("")
        self.line(text, bold=True)

    def state(self, word: str, before: str, after: str) -> None:
        """Print a state in its colour, with what it is of before it."""
        self._write(tame(before) + self._painted(word, _STATES.get(word, ""), bold=True) + tame(after))

    def item(self, mark: str, colour: str, label: str, text: str, *, indent: int) -> None:
        """Print a mark, a label and a text that is wrapped under itself."""
        head = " " * indent + self._painted(mark, colour) + " " + tame(label)
        under = indent + len(mark) + 1 + len(label)
        lines = textwrap.wrap(
            tame(text), max(self._width - under, 20), break_long_words=False, break_on_hyphens=False
        ) or [""]
        self._write(head + lines[0])
        for line in lines[1:]:
            self._write(" " * under + line)

    def diff(self, text: str, *, indent: int) -> None:
        """Print a unified difference, never wrapped: it may be copied."""
        for line in text.splitlines():
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            self._write(" " * indent + self._painted(line, colour))

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")

    def _state(self, cell: str) -> str:
        return self._painted(cell, _STATES.get(cell.strip(), ""))

    def _painted(self, text: str, colour: str, *, bold: bool = False) -> str:
        text = tame(text)
        codes = [code for code in ("1" if bold else "", _CODES.get(colour, "")) if code]
        if not self._colours or not codes or not text:
            return text
        return f"\033[{';'.join(codes)}m{text}\033[0m"


def tame(text: str) -> str:
    """Return a text with its control characters written out, but for those that end lines and columns."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in text)


def yaml_text(tree: object) -> str:
    """Return an object as YAML, in its own order and with nothing folded or shared."""
    import yaml  # noqa: PLC0415 heavy

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            del data
            return True

    text: str = yaml.dump(tree, Dumper=Dumper, sort_keys=False, width=1 << 16)
    return text
