"""Pieces, put together to a file: on the lines where they stood, if that can be, so that tracebacks lead there."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.client.code.source_collector import Piece
    from trainplane.client.code.sources import Source

_FUTURE = "from __future__ "


def put_together(pieces: Sequence[Piece]) -> str:
    """Return the text of a module; it compiles."""
    places = {piece.source.file: piece.source for piece in pieces if piece.source}
    only = next(iter(places.values())) if len(places) == 1 else None
    text = _in_place(pieces, only) if only and only.is_file else None
    if text is not None and _fault(text) is None:
        return text
    text = _in_order(pieces)
    if fault := _fault(text):
        raise CodeError(
            f"what your function needs does not make a valid program ({fault.msg}): move it into a module of its own"
        )
    return text


def _fault(text: str) -> SyntaxError | None:
    try:
        compile(text, "<shipped>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    return None


def _in_place(pieces: Sequence[Piece], source: Source) -> str | None:
    """Return the source with all but the pieces blank; None if two want the same line, or their order is another."""
    lines = [""] * len(source.lines)
    for piece in sorted((piece for piece in pieces if piece.source), key=lambda piece: piece.line):
        texts = piece.text.split("\n")
        first = piece.line - 1
        if lines[first] and not (len(texts) == 1 and not piece.indented):
            return None
        lines[first] = f"{lines[first]}; {texts[0]}" if lines[first] else texts[0]
        lines[first + 1 : first + len(texts)] = texts[1:]
        if piece.indented and not lines[first - 1]:
            lines[first - 1] = "if True:"
    last = [piece for piece in pieces if piece.follows]
    if last and any(piece.source for piece in pieces[pieces.index(last[0]) :]):
        return None
    lines += [piece.text for piece in last]
    loose = "; ".join(piece.text for piece in pieces if not piece.source and not piece.follows)
    if loose:
        filled = (place for place, line in enumerate(lines) if line and not line.startswith(_FUTURE))
        free = next(filled, 0) - 1
        if free < 0 or lines[free]:
            return None
        lines[free] = loose
    return "\n".join(lines).rstrip() + "\n"


def _in_order(pieces: Sequence[Piece]) -> str:
    """Return the pieces one after the other, each behind what it needs."""
    future = [piece.text for piece in pieces if piece.text.startswith(_FUTURE)]
    blocks = list(dict.fromkeys(future))
    for is_short, group in itertools.groupby(
        (piece for piece in pieces if not piece.text.startswith(_FUTURE)),
        lambda piece: "\n" not in piece.text and not piece.indented,
    ):
        texts = [f"if True:\n{piece.text}" if piece.indented else piece.text for piece in group]
        blocks += ["\n".join(texts)] if is_short else texts
    return "\n\n\n".join(blocks) + "\n"
