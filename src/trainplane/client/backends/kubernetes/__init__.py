"""TrainJobs on a cluster, through its API server alone; of a MultiKueue hub, also those that run elsewhere."""

from trainplane.client.backends.kubernetes.backend import KubernetesBackend

__all__ = ["KubernetesBackend"]
