"""The other side: a kopf operator that does nothing with the same objects. Run by `kopf run`."""

from __future__ import annotations

import logging
from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Switch off what costs and is not compared: events posted, and a line of log per object."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)


@kopf.on.event("trainer.kubeflow.org", "v1alpha1", "trainjobs")
def trainjob(**_: Any) -> None:
    """Do nothing with a TrainJob."""


@kopf.on.event("jobset.x-k8s.io", "v1alpha2", "jobsets")
def jobset(**_: Any) -> None:
    """Do nothing with a JobSet."""
