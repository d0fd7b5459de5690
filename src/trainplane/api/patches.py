"""What a TrainJob changes in its runtime: today's `runtimePatches`, and the older fields that became them.

Containers, volumes and the rest of a pod stay untyped trees: they are merged into the runtime's template as they are.
"""

from typing import Annotated

from msgspec import field

from trainplane.api.declaration import IMMUTABLE, Envelope, Field, Moment, keyed
from trainplane.api.meta import TemplateMeta
from trainplane.api.tree import Tree


class ContainerPatch(Envelope, frozen=True):
    """Changes to one container of the runtime."""

    name: Annotated[str, Field("The container's name in the runtime.", min_length=1, max_length=253)]
    env: Annotated[
        list[Tree],
        keyed("Variables to add or replace.", "name", max_items=128, each=Field(ref="core.v1.EnvVar")),
    ] = field(default_factory=list)
    volume_mounts: Annotated[
        list[Tree],
        keyed("Mounts to add or replace.", "name", max_items=128, each=Field(ref="core.v1.VolumeMount")),
    ] = field(default_factory=list)
    security_context: Annotated[Tree | None, Field("Security settings to merge in.", ref="core.v1.SecurityContext")] = (
        None
    )


class PodSpecPatch(Envelope, frozen=True):
    """Changes to the pods of one replicated job. Where to run may change while suspended, what to run may not."""

    service_account_name: Annotated[
        str | None, Field("The pods' service account.", max_length=253, rules=(IMMUTABLE,))
    ] = None
    volumes: Annotated[
        list[Tree],
        keyed("Volumes to add.", "name", max_items=128, each=Field(ref="core.v1.Volume"), rules=(IMMUTABLE,)),
    ] = field(default_factory=list)
    init_containers: Annotated[
        list[ContainerPatch], keyed("Changes to init containers.", "name", max_items=64, rules=(IMMUTABLE,))
    ] = field(default_factory=list)
    containers: Annotated[
        list[ContainerPatch], keyed("Changes to containers.", "name", max_items=64, rules=(IMMUTABLE,))
    ] = field(default_factory=list)
    image_pull_secrets: Annotated[
        list[Tree],
        keyed(
            "Secrets for pulling images.",
            "name",
            max_items=64,
            each=Field(ref="core.v1.LocalObjectReference"),
            rules=(IMMUTABLE,),
        ),
    ] = field(default_factory=list)
    security_context: Annotated[
        Tree | None,
        Field("The pods' security settings to merge in.", ref="core.v1.PodSecurityContext", rules=(IMMUTABLE,)),
    ] = None
    termination_grace_period_seconds: Annotated[
        int | None,
        Field("How long pods may take to stop, in seconds.", format="int64", minimum=0, rules=(IMMUTABLE,)),
    ] = None
    node_selector: Annotated[dict[str, str], Field("Labels that nodes must have.")] = field(default_factory=dict)
    affinity: Annotated[Tree | None, Field("Which nodes and neighbours to seek or shun.", ref="core.v1.Affinity")] = (
        None
    )
    tolerations: Annotated[
        list[Tree],
        Field(
            "Taints to tolerate, in place of the runtime's.",
            list_type="atomic",
            max_items=128,
            each=Field(ref="core.v1.Toleration"),
        ),
    ] = field(default_factory=list)
    scheduling_gates: Annotated[
        list[Tree],
        keyed("Gates that hold pods back.", "name", max_items=16, each=Field(ref="core.v1.PodSchedulingGate")),
    ] = field(default_factory=list)


class PodTemplatePatch(Envelope, frozen=True):
    """Changes to a pod template."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations for the pods.")] = None
    spec: Annotated[PodSpecPatch | None, Field("Changes to the pods.")] = None


class JobSpecPatch(Envelope, frozen=True):
    """Changes to a Job."""

    template: Annotated[PodTemplatePatch | None, Field("Changes to the Job's pod template.")] = None


class JobTemplatePatch(Envelope, frozen=True):
    """Changes to a Job template."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations for the Jobs.")] = None
    spec: Annotated[JobSpecPatch | None, Field("Changes to the Jobs.")] = None


class ReplicatedJobPatch(Envelope, frozen=True):
    """Changes to one replicated job of the runtime."""

    name: Annotated[str, Field("The replicated job's name in the runtime.", min_length=1, max_length=253)]
    template: Annotated[JobTemplatePatch | None, Field("Changes to its Job template.")] = None


class JobSetSpecPatch(Envelope, frozen=True):
    """Changes to the JobSet's replicated jobs."""

    replicated_jobs: Annotated[
        list[ReplicatedJobPatch], keyed("Changes to replicated jobs.", "name", max_items=100)
    ] = field(default_factory=list)


class JobSetTemplatePatch(Envelope, frozen=True):
    """Changes to the runtime's JobSet template."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations for the JobSet.")] = None
    spec: Annotated[JobSetSpecPatch | None, Field("Changes to the JobSet.")] = None


class RuntimeSpecPatch(Envelope, frozen=True):
    """Changes to the runtime's spec."""

    template: Annotated[JobSetTemplatePatch | None, Field("Changes to the JobSet template.")] = None


class RuntimePatch(Envelope, frozen=True):
    """What one manager (the user, Kueue, a policy) changes in the runtime for this TrainJob."""

    manager: Annotated[
        str,
        Field(
            "Who makes these changes, as a path that begins with a domain: example.com/team.",
            min_length=1,
            max_length=253,
            rules=(IMMUTABLE,),
        ),
    ]
    time: Annotated[Moment | None, Field("When the entry last changed; set at admission.", format="date-time")] = None
    training_runtime_spec: Annotated[RuntimeSpecPatch | None, Field("The changes.")] = None


class TargetJob(Envelope, frozen=True):
    """A replicated job that an older override speaks of."""

    name: Annotated[str, Field("The replicated job's name.")]


class ContainerOverride(Envelope, frozen=True):
    """Changes to one container, v2.0 and v2.1."""

    name: Annotated[str, Field("The container's name in the runtime.")]
    env: Annotated[list[Tree], keyed("Variables to add or replace.", "name", each=Field(ref="core.v1.EnvVar"))] = field(
        default_factory=list
    )
    volume_mounts: Annotated[
        list[Tree], keyed("Mounts to add or replace.", "name", each=Field(ref="core.v1.VolumeMount"))
    ] = field(default_factory=list)


class PodSpecOverride(Envelope, frozen=True):
    """What v2.0 and v2.1 let a TrainJob change of a pod."""

    service_account_name: Annotated[str | None, Field("The pods' service account.")] = None
    node_selector: Annotated[dict[str, str], Field("Labels that nodes must have.")] = field(default_factory=dict)
    tolerations: Annotated[
        list[Tree], Field("Taints to tolerate.", list_type="atomic", each=Field(ref="core.v1.Toleration"))
    ] = field(default_factory=list)
    volumes: Annotated[list[Tree], keyed("Volumes to add.", "name", each=Field(ref="core.v1.Volume"))] = field(
        default_factory=list
    )
    init_containers: Annotated[list[ContainerOverride], keyed("Changes to init containers.", "name")] = field(
        default_factory=list
    )
    containers: Annotated[list[ContainerOverride], keyed("Changes to containers.", "name")] = field(
        default_factory=list
    )
    scheduling_gates: Annotated[
        list[Tree], keyed("Gates that hold pods back.", "name", each=Field(ref="core.v1.PodSchedulingGate"))
    ] = field(default_factory=list)


class TargetedPodSpecOverride(PodSpecOverride, frozen=True):
    """One entry of v2.0's `podSpecOverrides`."""

    target_jobs: Annotated[
        list[TargetJob], Field("The replicated jobs to change.", list_type="atomic", required=True)
    ] = field(default_factory=list)


class TemplatePodSpecOverride(PodSpecOverride, frozen=True):
    """The pod of v2.1's `podTemplateOverrides`."""

    affinity: Annotated[Tree | None, Field("Which nodes and neighbours to seek or shun.", ref="core.v1.Affinity")] = (
        None
    )
    image_pull_secrets: Annotated[
        list[Tree],
        keyed("Secrets for pulling images.", "name", each=Field(ref="core.v1.LocalObjectReference")),
    ] = field(default_factory=list)


class PodTemplateOverride(Envelope, frozen=True):
    """One entry of v2.1's `podTemplateOverrides`."""

    target_jobs: Annotated[
        list[TargetJob], Field("The replicated jobs to change.", list_type="atomic", required=True)
    ] = field(default_factory=list)
    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations for the pods.")] = None
    spec: Annotated[TemplatePodSpecOverride | None, Field("Changes to the pods.")] = None
