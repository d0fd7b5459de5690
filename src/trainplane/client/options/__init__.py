"""What a TrainJob can be told beside its trainer: `train(..., options=[Name("my-job"), Queue("team-a")])`.

An option is a callable that is given the document, the trainer and the backend's kind, and changes the document. Names,
fields and the call are those of the `kubeflow` SDK; but labels, annotations and patches of several options add up.
"""

from trainplane.client.options.metadata import After, Annotations, Labels, Name, PriorityClass, Queue
from trainplane.client.options.option import Option
from trainplane.client.options.patches import (
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)
from trainplane.client.options.running import (
    ActiveDeadlineSeconds,
    NumProcPerNode,
    Suspend,
    TrainerArgs,
    TrainerCommand,
)
from trainplane.client.options.secrets import NotSecret

__all__ = [
    "ActiveDeadlineSeconds",
    "After",
    "Annotations",
    "ContainerPatch",
    "JobSetSpecPatch",
    "JobSetTemplatePatch",
    "JobSpecPatch",
    "JobTemplatePatch",
    "Labels",
    "Name",
    "NotSecret",
    "NumProcPerNode",
    "Option",
    "PodSpecPatch",
    "PodTemplatePatch",
    "PriorityClass",
    "Queue",
    "ReplicatedJobPatch",
    "RuntimePatch",
    "Suspend",
    "TrainerArgs",
    "TrainerCommand",
    "TrainingRuntimeSpecPatch",
]
