from __future__ import annotations

from trainplane.client.backends.local import events


def test_restarts_are_counted_in_words() -> None:
    assert [events.restarted(n).message.split()[-2] for n in (1, 2, 3, 4, 11, 22)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "22nd",
    ]
