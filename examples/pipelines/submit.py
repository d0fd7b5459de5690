"""A step of a pipeline, or what a CI job runs: submit a training, wait for it, and end as it ended.

    python submit.py train.py --runtime pipeline --namespace team --result result.json -- --steps 50

Exit code 0: it is Complete. 1: it failed, and standard error says where and why. 2: it could not be submitted, or is
not over in time. `--local` runs it as processes of this machine, to try it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from trainplane import (
    JobFailedError,
    KubernetesBackendConfig,
    LocalProcessBackendConfig,
    Runtime,
    ScriptTrainer,
    TrainerClient,
    TrainingRuntimeSource,
    TrainplaneError,
)

HERE = Path(__file__).parent


def main() -> int:
    """Submit, wait, write the result."""
    given = _arguments()
    if given.local:
        config = LocalProcessBackendConfig(runtime_source=TrainingRuntimeSource([str(HERE / "runtime.yaml")]))
    else:
        config = KubernetesBackendConfig(namespace=given.namespace)
    trainer = ScriptTrainer(
        given.script,
        args=given.rest,
        workspace=HERE,
        num_nodes=given.nodes,
        env=dict(entry.split("=", 1) for entry in given.env),
    )
    result = {"status": "Unknown"}
    try:
        with TrainerClient(config) as client:
            result["job"] = client.train(runtime=Runtime(name=given.runtime), trainer=trainer)
            print(f"submitted {result['job']}", flush=True)
            job = client.wait_for_job_status(result["job"], timeout=given.timeout)
            result |= {"status": job.status, "lines": list(client.get_job_logs(job.name))[-1:]}
    except JobFailedError as error:
        result |= {"status": "Failed", "cause": error.cause.reason}
        print(error, file=sys.stderr)
        return 1
    except TrainplaneError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if given.result:
            Path(given.result).write_text(json.dumps(result))
    print(*result["lines"], sep="\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("script", help="the training, a file beside this one")
    parser.add_argument("--runtime", default="pipeline")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--namespace")
    parser.add_argument("--local", action="store_true", help="processes of this machine in place of a cluster")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds")
    parser.add_argument("--result", help="a JSON file for the next step: job, status, last line or cause")
    own, _, rest = _split(sys.argv[1:])
    given = parser.parse_args(own)
    given.rest = rest
    return given


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the words before and behind `--`."""
    place = words.index("--") if "--" in words else len(words)
    return words[:place], "--", words[place + 1 :]


if __name__ == "__main__":
    sys.exit(main())
