"""Secrets in kubeconfigs of workers: wherever a token stands, and however the text is broken, nothing ever shows it.

`live/test_worker_kubeconfigs` attacks the processes with some such kubeconfigs; here are very many, in this process.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import logging
import time
import traceback
import tracemalloc
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.size import sized
from tests.unit.hub.fakeworker import client_pair, cluster, serving
from trainplane.hub.errors import HubError
from trainplane.hub.workers import WorkerKubeconfig, config_of
from trainplane.kube.client import Client
from trainplane.kube.credentials import StaticCredentials
from trainplane.kube.errors import KubeError
from trainplane.kube.loglines import JsonLines
from trainplane.kube.transport import TransportSettings

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from tests.suite import SuiteReport
    from trainplane.kube.config import Config

Tree = dict[str, Any]

CANARY = "hunter2_Zq"
"""No part of a DNS name, so that it can be in no address that is used, and no word of any message."""
ENCODED = base64.b64encode(CANARY.encode()).decode()
SHOWN = (CANARY, CANARY.lower(), ENCODED, ENCODED.rstrip("="))
SERVER = f"https://127.0.0.1:9/{CANARY}"
"""Where nobody listens."""
CERTIFICATE, KEY = client_pair()
EXAMPLES = sized(300, full=5000)


def _kubeconfig() -> Tree:
    """Return a kubeconfig that is used, with everything that one may have, and the secret wherever it can be."""
    user = {
        "token": CANARY,
        "client-certificate-data": CERTIFICATE,
        "client-key-data": KEY,
        "as": CANARY,
        "as-uid": CANARY,
        "as-groups": [CANARY],
        "as-user-extra": {CANARY: [CANARY]},
    }
    proxy = f"http://{CANARY}:{CANARY}@127.0.0.1:9"
    entry = cluster(SERVER) | {"proxy-url": proxy, "disable-compression": False}
    extensions = [{"name": CANARY, "extension": {CANARY: CANARY}}]
    context = {"cluster": CANARY, "user": CANARY, "namespace": "n", "extensions": extensions}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {"colors": True},
        "current-context": CANARY,
        "contexts": [{"name": CANARY, "context": context}],
        "clusters": [{"name": CANARY, "cluster": entry}],
        "users": [{"name": CANARY, "user": user}],
    }


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from _paths(inner, (*path, step))


PATHS = list(_paths(_kubeconfig()))
VALUES = st.sampled_from(
    [
        CANARY,
        f"https://{CANARY}",
        f"https://x:{CANARY}@127.0.0.1:9",
        f"https://127.0.0.1:9/{CANARY}",
        f"https://127.0.0.1:9?{CANARY}",
        f"http://{CANARY}:{CANARY}@127.0.0.1:9",
        f"{CANARY}://127.0.0.1",
        f"{CANARY}\r\nX-Secret: {CANARY}",
        f"\x00{CANARY}",
        f"\u00e9{CANARY}",
        ENCODED,
        base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----\n".encode()).decode(),
        [CANARY],
        {CANARY: CANARY},
        {"command": CANARY, "apiVersion": CANARY},
        None,
        7,
    ]
)
KEYS = st.sampled_from([CANARY, "exec", "tokenFile", "password", "certificate-authority", "insecure-skip-tls-verify"])
PUNCTUATION = [*"{}[]:'\"\n\t&*!|>%@#-\\\x00\u00e9", "", ": ", "<<: ", "\n---\n"]
WITH_CANARY = [f"!{CANARY} ", f"*{CANARY}", f"&{CANARY} ", f"\n{CANARY}: {CANARY}\n"]
CUTS = st.sampled_from(PUNCTUATION + WITH_CANARY)


def _put(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value


def _other_value(draw: st.DrawFn, tree: Tree) -> None:
    _put(tree, draw(st.sampled_from(PATHS)), draw(VALUES))


def _other_key(draw: st.DrawFn, tree: Tree) -> None:
    path = draw(st.sampled_from(PATHS))
    _put(tree, (*path[:-1], draw(KEYS)) if isinstance(path[-1], str) else path, draw(VALUES))


def _twins(draw: st.DrawFn, tree: Tree) -> None:
    entries = tree[draw(st.sampled_from(["users", "clusters", "contexts"]))]
    entries.append(json.loads(json.dumps(entries[0])))


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A kubeconfig that is used, but for what was changed in it, and then cut out of its text or put in between."""
    tree = _kubeconfig()
    for change in draw(st.lists(st.sampled_from([_other_value, _other_key, _twins]), max_size=2)):
        with contextlib.suppress(TypeError, KeyError, IndexError, AttributeError):  # an earlier one took the place away
            change(draw, tree)
    style = draw(st.sampled_from(["block", "flow", "json"]))
    text = json.dumps(tree, indent=2) if style == "json" else yaml.dump(tree, default_flow_style=style == "flow")
    for _ in range(draw(st.integers(0, 2))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        text = text[:at] + draw(CUTS) + text[at + length :]
    return text


class Told:
    """Everything that anybody could have been told: log lines as the hub writes them, errors and all their causes."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self._handler = logging.StreamHandler(self.stream)
        self._handler.setFormatter(JsonLines())

    def __enter__(self) -> Self:
        self._level = logging.root.level
        logging.root.addHandler(self._handler)
        logging.root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        logging.root.removeHandler(self._handler)
        logging.root.setLevel(self._level)

    def note(self, error: BaseException) -> None:
        """Note an error as handlers of errors do: as text, as repr, with its traceback, and so its causes."""
        logging.getLogger("trainplane").error("worker cannot be used", exc_info=error, extra={"error": str(error)})
        seen: BaseException | None = error
        while seen is not None:
            self.stream.write(f"{seen} {seen!r} {vars(seen)}\n")
            seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        self.stream.write("".join(traceback.format_exception(error)))

    def assert_nothing(self) -> None:
        told = self.stream.getvalue()
        for secret in SHOWN:
            assert secret not in told, told


@pytest.mark.attack("reader of logs, statuses and errors", "a token, wherever in a kubeconfig it was put")
@settings(max_examples=EXAMPLES)
@given(broken())
@example(yaml.safe_dump(_kubeconfig()))
@example(yaml.safe_dump(_kubeconfig()).replace("proxy-url:", "#"))
def test_learn_a_token_from_any_error(text: str) -> None:
    source = WorkerKubeconfig("worker1", "Secret kueue-system/worker1", text)
    with Told() as told:
        told.stream.write(repr(source))
        try:
            config = config_of(source)
        except HubError as error:
            told.note(error)
        else:
            told.stream.write(repr(config))
            asyncio.run(_use(config, told))
    told.assert_nothing()


async def _use(config: Config, told: Told) -> None:
    """Use a kubeconfig that is accepted, if it leads nowhere but to this machine: whoever answers, nothing is told."""
    assert type(config.credentials) is StaticCredentials
    assert not config.tls.insecure
    assert all(isinstance(part, str | None) for part in (config.tls.ca, config.tls.certificate, config.tls.key))
    if {urlsplit(url).hostname for url in (config.server, config.proxy) if url} != {"127.0.0.1"}:
        return
    async with Client.connect(config, settings=TransportSettings(attempts=1)) as client:
        try:
            await client.version()
        except KubeError as error:  # and nothing else: it would end the hub
            told.note(error)


ANSWERS = {
    "nothing": b"",
    "garbage": b"\x00\x01\x02\r\n\r\n",
    "unauthorized": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
    "proxy login": b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
    "elsewhere": b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "no JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
}


@pytest.mark.attack("worker, or proxy on the way to it", "an error that shows the request, with its token, to others")
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("way", ["direct", "proxy"])
async def test_learn_a_token_from_a_failed_request(way: str, answer: bytes) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    made = _kubeconfig()
    entry = made["clusters"][0]["cluster"]
    async with await asyncio.start_server(reply, "127.0.0.1", 0, ssl=serving() if way == "direct" else None) as server:
        port = server.sockets[0].getsockname()[1]
        if way == "proxy":
            entry["proxy-url"] = entry["proxy-url"].replace(":9", f":{port}")
        else:
            entry["server"] = entry["server"].replace(":9", f":{port}")
            del entry["proxy-url"]
        config = config_of(WorkerKubeconfig("worker1", "Secret kueue-system/worker1", yaml.safe_dump(made)))
        with Told() as told:
            async with Client.connect(config, settings=TransportSettings(attempts=1)) as client:
                failures = [await _failure(client.version()), await _failure(_upgraded(client))]
            for error in failures:
                told.note(error)
    told.assert_nothing()


async def _failure(work: Coroutine[Any, Any, Any]) -> KubeError:
    with pytest.raises(KubeError) as caught:
        await work
    return caught.value


async def _upgraded(client: Client) -> None:
    async with client.transport.websocket("/api/v1/namespaces/n/pods/p/exec?command=true", ["v5.channel.k8s.io"]):
        pass


@pytest.mark.attack("author of a worker's Secret", "the hub's memory and time, by a kubeconfig of a megabyte")
@pytest.mark.parametrize("shape", ["laughs", "nested", "entries", "keys", "token", "claims", "key"])
def test_make_a_kubeconfig_dear(shape: str, report: SuiteReport) -> None:
    laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    text = yaml.safe_dump(_kubeconfig())
    claims = base64.urlsafe_b64encode(b'{"exp":' + b"[" * 9000).decode().rstrip("=")
    entry = "- name: w{}\n  user: {{exec: {{command: x}}}}\n"
    texts = {
        "laughs": laughs,
        "nested": "[" * 1_000_000,
        "entries": "users:\n" + "".join(entry.format(number) for number in range(5000)),
        "keys": "".join(f"k{number}: v\n" for number in range(20_000)),
        "token": text.replace(f"token: {CANARY}", "token: " + "t" * 200_000),
        "claims": text.replace(f"token: {CANARY}", f"token: a.{claims}.b"),
        "key": text.replace(KEY, base64.b64encode(b"k" * 150_000).decode()),
    }
    tracemalloc.start()
    began = time.process_time()
    with contextlib.suppress(HubError):
        config_of(WorkerKubeconfig("worker1", "Secret a/b", texts[shape]))
    seconds = time.process_time() - began
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report.row(kubeconfig=shape, seconds=round(seconds, 3), memory_mb=round(memory / 1e6, 1))
    assert seconds < 1.5, "of CPU, with the tracing of memory, which makes it several times slower"
    assert memory < 64e6
