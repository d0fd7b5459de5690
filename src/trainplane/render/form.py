"""The form of a replicated job that plugins count on: fields where they look for fields, texts where for texts.

A runtime at the API server has passed its schema; one in a snapshot or in a file has passed none. Without this check
a plugin would break on it, and its author be blamed for what the runtime's author wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from trainplane.api.jobset import ReplicatedJob

Fields = dict[str, Any] | None
ListOfFields = list[dict[str, Any]] | None
ListOfTexts = list[str] | None


class _Resources(msgspec.Struct):
    limits: Fields = None
    requests: Fields = None
    claims: ListOfFields = None


class _Container(msgspec.Struct, rename="camel"):
    name: str | None = None
    image: str | None = None
    command: ListOfTexts = None
    args: ListOfTexts = None
    env: ListOfFields = None
    env_from: ListOfFields = None
    ports: ListOfFields = None
    volume_mounts: ListOfFields = None
    resources: _Resources | None = None
    security_context: Fields = None


class _PodSpec(msgspec.Struct, rename="camel"):
    init_containers: list[_Container] | None = None
    containers: list[_Container] | None = None
    volumes: ListOfFields = None
    tolerations: ListOfFields = None
    scheduling_gates: ListOfFields = None
    image_pull_secrets: ListOfFields = None
    node_selector: Fields = None
    affinity: Fields = None
    security_context: Fields = None


class _Metadata(msgspec.Struct):
    labels: Fields = None
    annotations: Fields = None


class _PodTemplate(msgspec.Struct):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


class _JobSpec(msgspec.Struct):
    parallelism: int | None = None
    completions: int | None = None
    template: _PodTemplate | None = None


class _JobTemplate(msgspec.Struct):
    metadata: _Metadata | None = None
    spec: _JobSpec | None = None


class _ReplicatedJob(msgspec.Struct, rename="camel"):
    """Other fields nobody looks into."""

    replicas: int | None = None
    template: _JobTemplate | None = None
    depends_on: ListOfFields = None


def check_form(job: ReplicatedJob) -> None:
    """Raise TypeError if a part of a replicated job has another form than a JobSet's; the message names the part."""
    try:
        msgspec.convert(job.tree, _ReplicatedJob)
    except msgspec.ValidationError as error:
        raise TypeError(f"replicatedJobs[{job.name}]: {error}") from error
