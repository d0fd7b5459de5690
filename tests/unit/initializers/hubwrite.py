"""A hub that can be written to: as much of its API as huggingface_hub asks for to make a commit."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.unit.initializers.servers import COMMIT, Asked, HubHandler, Site


class WritableHub(HubHandler):
    """Takes repositories, large files by LFS, and commits; `.bin` and `.safetensors` are large.

    `site.once` and `site.fault` go wrong as for reading; "cut" after a commit loses its answer.
    """

    def below(self, repository: str) -> dict[str, bytes]:
        return {name: body for name, body in super().below(repository).items() if name}

    def revision(self, repository: str, revision: str) -> None:
        if f"{repository}/" in self.site.files and not self.below(repository):
            body = {"_id": "1", "id": repository, "sha": COMMIT, "private": True, "tags": [], "siblings": []}
            self.answer(
                200, {"Content-Type": "application/json"}, json.dumps({**body, "downloads": 0, "likes": 0}).encode()
            )
        else:
            super().revision(repository, revision)

    def do_POST(self) -> None:  # noqa: N802 the base calls it so
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.handle_body(body)

    do_PUT = do_POST  # noqa: N815 the base calls it so

    def handle_body(self, body: bytes) -> None:
        self.asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()})
        self.site.asked.append(self.asked)
        fault = self.site.fault(self.asked)
        if not self.goes_wrong(fault):
            time.sleep(0.02 if fault == "slow" else 0)
            self.take(body, fault)

    def goes_wrong(self, fault: str) -> bool:
        """Answer what is no success, if it is to be none."""
        signed = urlsplit(self.path).path.startswith("/lfs/")
        if self.site.token and not signed and self.asked.headers.get("authorization") != f"Bearer {self.site.token}":
            self.answer(401, {}, b"a token is wanted")
        elif self.site.once.get(self.path):
            self.answer(*self.site.once[self.path].pop())
        elif fault in ("busy", "broken"):
            self.answer(503 if fault == "busy" else 500, {"Retry-After": "0"}, b"")
        elif fault == "reset":
            self.close_connection = True
        else:
            return False
        return True

    def take(self, body: bytes, fault: str) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        match parts:
            case ["api", "repos", "create"]:
                asked = json.loads(body)
                name = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
                assert asked.get("private") is True or asked.get("visibility") == "private", asked
                self.site.files[f"{name}/"] = b""
                self.say({"url": f"{self.site.url}/{name}", "id": name})
            case ["api", "models" | "datasets", *repository, "preupload", _]:
                self.preupload("/".join(repository), json.loads(body))
            case ["api", "models" | "datasets", *repository, "paths-info", _]:
                self.paths_info("/".join(repository), body)
            case ["api", "models" | "datasets", *repository, "commit", _]:
                self.commit("/".join(repository), body, fault)
            case [*_, "info", "lfs", "objects", "batch"]:
                self.batch(json.loads(body))
            case ["lfs", oid]:
                self.upload(oid, body)
            case _:
                self.answer(404, {}, b"")

    def say(self, tree: Any) -> None:
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(tree).encode())

    def preupload(self, repository: str, asked: dict[str, Any]) -> None:
        if f"{repository}/" not in self.site.files and not self.below(repository):
            self.answer(404, {"X-Error-Code": "RepoNotFound"}, b"{}")
            return
        modes = []
        for file in asked["files"]:
            large = file["path"].endswith((".bin", ".safetensors"))
            modes.append({"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False})
        self.say({"files": modes})

    def paths_info(self, repository: str, body: bytes) -> None:
        asked = parse_qs(body.decode())["paths"]
        entries = [self.entry(name, content) for name, content in self.below(repository).items() if name in asked]
        self.say(entries)

    def entry(self, name: str, content: bytes) -> dict[str, Any]:
        entry = super().entry(name, content)
        if name.endswith(".bin"):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return entry

    def batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for wanted in asked["objects"]:
            there = f"lfs:{wanted['oid']}" in self.site.files
            upload = {"actions": {"upload": {"href": f"{self.site.url}/lfs/{wanted['oid']}"}}}
            objects.append({**wanted, **({} if there else upload)})
        self.say({"transfer": "basic", "objects": objects})

    def upload(self, oid: str, body: bytes) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            self.answer(400, {}, b"these are other bytes")
            return
        self.site.files[f"lfs:{oid}"] = body
        self.asked.sent += len(body)
        self.answer(200, {}, b"")

    def commit(self, repository: str, body: bytes, fault: str) -> None:
        changed: dict[str, bytes | None] = {}
        for line in body.splitlines():
            match json.loads(line):
                case {"key": "file", "value": value}:
                    changed[value["path"]] = base64.b64decode(value["content"])
                case {"key": "lfsFile", "value": value}:
                    content = self.site.files.get(f"lfs:{value['oid']}")
                    if content is None:
                        self.answer(422, {}, b"no such large file")
                        return
                    changed[value["path"]] = content
                case {"key": "deletedFile", "value": value}:
                    changed[value["path"]] = None
        for path, content in changed.items():
            if content is None:
                self.site.files.pop(f"{repository}/{path}", None)
            else:
                self.site.files[f"{repository}/{path}"] = content
        if fault == "cut":
            self.close_connection = True
            return
        self.say({"commitUrl": f"{self.site.url}/{repository}/commit/{COMMIT}", "commitOid": COMMIT, "success": True})


def committed(site: Site, repository: str) -> dict[str, bytes]:
    """Return the files of a repository."""
    return {
        name.removeprefix(f"{repository}/"): content
        for name, content in site.files.items()
        if name.startswith(f"{repository}/") and name != f"{repository}/"
    }
