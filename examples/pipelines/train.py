"""A training: fits y = slope * x to rows of a CSV file, tells MLflow and W&B of it where they are, writes the model."""

from __future__ import annotations

import argparse
import csv
import json
import os
from pathlib import Path


def read(path: str) -> list[tuple[float, float]]:
    """Return the rows of a file; without one, rows that lie on a line."""
    if not path:
        return [(x / 10, 3 * x / 10) for x in range(1, 20)]
    with Path(path).open(newline="") as file:
        return [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]


def trackers() -> list:
    """Return what is told of each step: a function of the step and its figures for every tracker that is set up."""
    found = []
    if "MLFLOW_TRACKING_URI" in os.environ:
        import mlflow  # noqa: PLC0415 only where it is used

        mlflow.start_run(run_name=os.environ.get("RUN_NAME"))
        found.append(lambda step, figures: mlflow.log_metrics(figures, step=step))
    if "WANDB_MODE" in os.environ:
        import wandb  # noqa: PLC0415 the same

        run = wandb.init(project="pipeline", name=os.environ.get("RUN_NAME"))
        found.append(lambda step, figures: run.log(figures, step=step))
    return found


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", default="")
    given = parser.parse_args()
    rows, slope, told = read(given.data), 0.0, trackers()
    for step in range(given.steps):
        errors = [(slope * x - y, x) for x, y in rows]
        loss = sum(error**2 for error, _ in errors) / len(rows)
        slope -= 0.2 * sum(2 * error * x for error, x in errors) / len(rows)
        for tell in told:
            tell(step, {"loss": loss})
    print(f"slope {slope:.3f} loss {loss:.6f} rows {len(rows)}", flush=True)
    if given.output:
        Path(given.output).write_text(json.dumps({"slope": slope, "loss": loss}))


if __name__ == "__main__":
    main()
