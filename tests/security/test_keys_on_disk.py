"""Private keys that pass through files: OpenSSL's binding reads nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lab.paths import REPOSITORY
from lab.pki import Authority

if TYPE_CHECKING:
    from pathlib import Path

_LOAD = """
import sys
from pathlib import Path
from trainplane.kube.certificates import ServingContext
from trainplane.kube.tls import Tls
certificate, key = Path(sys.argv[1]), Path(sys.argv[2])
Tls(certificate=certificate.read_text(), key=key.read_text()).context()
ServingContext().load(certificate.read_bytes(), key.read_bytes())
print("loaded")
"""
_KILLED = """
import os, ssl, sys
from pathlib import Path
from trainplane.kube.tls import Tls
ssl.SSLContext.load_cert_chain = lambda *_, **__: os._exit(9)  # a kill, in the moment when the file is there
Tls(certificate=Path(sys.argv[1]).read_text(), key=Path(sys.argv[2]).read_text()).context()
"""
_READ_ONLY = """
for folder in / /tmp /var/tmp; do
  mount --bind $folder $folder
  mount -o remount,ro,bind $folder
done
exec "$@"
"""


def run(program: str, folder: Path, *, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    pair = Authority.create(folder / "pki", "disk").issue("client", "client")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    command = [*prefix, sys.executable, "-c", program, str(pair.certificate), str(pair.key)]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.attack("admin who hardens the pod", "client certificates, with a read-only root and no temporary folder")
def test_use_a_client_certificate_where_nothing_can_be_written(tmp_path: Path) -> None:
    """No attack, but what defends against one: whoever must give up a read-only root to use certificates, will."""
    prefix = ("unshare", "--mount", "--propagation=private", "sh", "-ec", _READ_ONLY, "sh")
    done = run(_LOAD, tmp_path, prefix=prefix)
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr


@pytest.mark.attack("reader of the disk", "a worker's key, that a process left behind when it was killed")
def test_find_a_key_that_a_killed_process_left(tmp_path: Path) -> None:
    done = run(_KILLED, tmp_path)
    assert done.returncode == 9, done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []
