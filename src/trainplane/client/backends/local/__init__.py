"""What local backends share: a job's folder, its plan, the supervisor that runs it, and what clients read of it.

A TrainJob and its runtime are rendered by the same pipeline as in the operator. The JobSet becomes pods here (`pods`),
and a supervisor, a process of its own for each job, does what JobSet, the Job controller and the kubelet do in a
cluster (`jobset_policy` decides, `supervisor` acts). Everything that it does is written as documents of the Kubernetes
API (`folder`), so the same functions read them as read a cluster's (`client.reading`).

A backend brings a `Runner`, which starts a container of a pod: as a process, or with docker or podman.
"""
