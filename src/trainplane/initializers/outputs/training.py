"""When there is no more to come: the operator's status server is asked, which answers when training has ended."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

import aiohttp

from trainplane.initializers.errors import InvalidError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

End: TypeAlias = Literal["succeeded", "failed"]
State: TypeAlias = Literal["running", "succeeded", "failed"]

_POLL_SECONDS: Final = 25
_TIMEOUT: Final = aiohttp.ClientTimeout(total=_POLL_SECONDS + 20, sock_connect=10)
_MAX_ANSWER: Final = 4_096
_MAX_TOKEN: Final = 65_536
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_SHORTEST_ROUND: Final = 1.0
"""Seconds from one question to the next, if the server does not keep it as long as it is asked to."""


class Training:
    """What the status server says of the training that this pod is part of."""

    def __init__(self, env: Mapping[str, str], wait_seconds: int, learn: Callable[[str], None]) -> None:
        url = env.get("KUBEFLOW_TRAINER_SERVER_URL", "")
        self._token_file = env.get("KUBEFLOW_TRAINER_SERVER_TOKEN", "")
        self._ca = env.get("KUBEFLOW_TRAINER_SERVER_CA_CERT") or None
        if urlsplit(url).scheme != "https" or not urlsplit(url).hostname or not self._token_file:
            raise InvalidError(
                "KUBEFLOW_TRAINER_SERVER_URL and KUBEFLOW_TRAINER_SERVER_TOKEN must say whom to ask when training ends",
                "turn on the status server of the operator; outside a TrainJob, send with --now",
            )
        self._url = f"{url.rpartition('/')[0]}/training?wait={_POLL_SECONDS}"
        self._wait_seconds = wait_seconds
        self._asked_to_wait = 0.0
        """Seconds after which the server wants to be asked again, if it could not keep the question."""
        self._learn = learn

    async def end(self, trouble: Callable[[str], None]) -> End:
        """Return how training ended, when it has; an `UnreachableError` if nobody was ever there to say.

        An operator that answered once comes back, and hours of training must not be lost to an upgrade of it; one that
        never answered may be out of a pod's reach for good.
        """
        since, pause, answered = time.monotonic(), _FIRST_PAUSE, False
        while True:
            began = time.monotonic()
            try:
                answer = await self._ask()
            except (OSError, ValueError, TimeoutError, aiohttp.ClientError) as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}"
                trouble(f"whether training goes on is not known: {reason}")
                if not answered and began - since >= self._wait_seconds:
                    raise UnreachableError(
                        f"no operator said within {self._wait_seconds} s whether training goes on: {reason}",
                        "check the operator and the way to its status server, and run the job again",
                    ) from None
                left = max(since + self._wait_seconds - time.monotonic(), 0.1)
                await asyncio.sleep(pause if answered else min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if answer != "running":
                return answer
            pause, answered = _FIRST_PAUSE, True
            await asyncio.sleep(max(began + max(_SHORTEST_ROUND, self._asked_to_wait) - time.monotonic(), 0))

    async def _ask(self) -> State:
        """Ask once; the token is read each time, because it is replaced while the pod runs."""
        with Path(self._token_file).open() as opened:  # noqa: ASYNC230 a few bytes in memory
            token = opened.read(_MAX_TOKEN).strip()
        self._learn(token)
        context = ssl.create_default_context(cafile=self._ca)
        async with (
            # No proxy of the environment: the server is in the cluster.
            aiohttp.ClientSession(timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(
                self._url, headers={"Authorization": f"Bearer {token}"}, ssl=context, allow_redirects=False
            ) as response,
        ):
            body = await response.content.read(_MAX_ANSWER)
            again = response.headers.get("Retry-After", "")
            self._asked_to_wait = min(float(again), _LONGEST_PAUSE) if again.isascii() and again.isdigit() else 0.0
            if response.status != 200:
                raise ValueError(f"the operator answers {response.status}")
            read = json.loads(body)
        said = read.get("training") if isinstance(read, dict) else None
        for state in get_args(State):
            if said == state:
                return cast("State", state)
        raise ValueError("the operator's answer says nothing of training")
