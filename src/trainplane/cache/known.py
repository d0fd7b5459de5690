"""Types that msgspec has looked at before threads meet them.

It looks at a type when one is first decoded, and a second thread that decodes the same meanwhile ends the process
(a segmentation fault, seen with msgspec 0.22). Flight answers each call on a thread of its own, so two workers that say
hello at once could end the head. Every module that has types of what others send makes them known when it is loaded.
"""

from __future__ import annotations

import msgspec


def known(*kinds: type) -> None:
    """Look at types, and at all that they are made of."""
    for kind in kinds:
        msgspec.json.Decoder(kind)
