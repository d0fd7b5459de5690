"""The lab's command line: `python -m lab up|down|status|kubeconfig|exec|logs`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from lab.cluster import Cluster, clusters, sweep
from lab.engines import binary
from lab.errors import LabError
from lab.profiles import PROFILES, up


def _up(arguments: argparse.Namespace) -> int:
    start = time.monotonic()
    print(f"lab: starting profile `{arguments.profile}` …", flush=True)
    started = up(arguments.profile, arguments.name)
    for cluster in started:
        print(f"lab: `{cluster.name}` is up at https://127.0.0.1:{cluster.port}")
    print(f"lab: ready in {time.monotonic() - start:.1f} s. Next:")
    print(f"  python -m lab exec {started[0].name} -- kubectl get nodes,pods -A")
    print(f"  export KUBECONFIG=$(python -m lab kubeconfig {started[0].name})")
    print(f"  python -m lab down {' '.join(cluster.name for cluster in started)}")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    names = arguments.names or [cluster.name for cluster in clusters()]
    if not arguments.names and not arguments.all and len(names) > 1:
        print(f"lab: several clusters are up ({', '.join(names)}): name some, or use --all.", file=sys.stderr)
        return 2
    for name in names:
        Cluster.find(name).down()
        print(f"lab: `{name}` is gone")
    for name in sweep():
        print(f"lab: removed what was left of `{name}`")
    if not names:
        print("lab: nothing is up")
    return 0


def _status(_: argparse.Namespace) -> int:
    up_now = clusters()
    if not up_now:
        print("lab: nothing is up; `python -m lab up` starts a cluster")
    for cluster in up_now:
        print(f"{cluster.name}: https://127.0.0.1:{cluster.port}, node address {cluster.address}")
        for engine in cluster.engines().values():
            process = engine.process
            state = f"runs, {process.rss_mb():.0f} MB" if process.alive() else "ENDED: see its log"
            print(f"  {engine.name:<26} {state:<22} {cluster.log(engine.name)}")
    return 0


def _kubeconfig(arguments: argparse.Namespace) -> int:
    print(Cluster.find(arguments.name).kubeconfig)
    return 0


def _exec(arguments: argparse.Namespace) -> int:
    """Become the command, inside the cluster's network, with kubectl and the kubeconfig at hand."""
    cluster = Cluster.find(arguments.name)
    command = [word for word in arguments.command if word != "--"] or [os.environ.get("SHELL", "/bin/sh")]
    tools = str(Path(binary("kubectl")).parent)
    environment = os.environ | {
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{tools}:{os.environ.get('PATH', '')}",
        "CONTAINERD_ADDRESS": "/run/containerd/containerd.sock",
    }
    here = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd())]  # the sandbox begins at its root
    full = cluster.sandbox.command([*here, *command])
    sys.stdout.flush()
    os.execvpe(full[0], full, environment)  # noqa: S606 the command is the caller's own


def _logs(arguments: argparse.Namespace) -> int:
    path = Cluster.find(arguments.name).log(arguments.engine)
    if not path.exists():
        known = ", ".join(Cluster.find(arguments.name).engines())
        print(f"lab: `{arguments.name}` has no engine `{arguments.engine}` (it has {known})", file=sys.stderr)
        return 2
    sys.stdout.write(path.read_text(errors="replace"))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="Real Kubernetes clusters on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("up", help="start a cluster")
    command.add_argument("name", nargs="?", default="lab")
    command.add_argument("--profile", choices=PROFILES, default="node", help="what to bring up (default: node)")
    command.set_defaults(run=_up)
    command = commands.add_parser("down", help="end clusters and leave nothing of them")
    command.add_argument("names", nargs="*")
    command.add_argument("--all", action="store_true", help="end every cluster that is up")
    command.set_defaults(run=_down)
    command = commands.add_parser("status", help="say what is up")
    command.set_defaults(run=_status)
    command = commands.add_parser("kubeconfig", help="print the path of a cluster's kubeconfig")
    command.add_argument("name", nargs="?", default="lab")
    command.set_defaults(run=_kubeconfig)
    command = commands.add_parser("exec", help="run a command in a cluster's network, with kubectl at hand")
    command.add_argument("name", nargs="?", default="lab")
    command.add_argument("command", nargs=argparse.REMAINDER)
    command.set_defaults(run=_exec)
    command = commands.add_parser("logs", help="print an engine's log")
    command.add_argument("engine")
    command.add_argument("name", nargs="?", default="lab")
    command.set_defaults(run=_logs)
    return parser


def main(words: list[str]) -> int:
    """Run one command; an error is one line for a person, not a traceback."""
    # `exec -- kubectl …` means the default cluster: argparse would take `kubectl` for its name.
    if words[:2] == ["exec", "--"]:
        words = ["exec", "lab", *words[1:]]
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
