"""Every name that pods, peers and people know the older kinds by.

Old clients, Kueue and dashboards spell these as training-operator v1.9.3 and mpi-operator v0.8.2 do, so a string that
one of them reads stands here and nowhere else. Names that the older kinds share with TrainJobs are in `api.names`.
"""

from __future__ import annotations

from typing import Final

from trainplane.api import names

# --- groups, versions, kinds

GROUP: Final = names.LEGACY_GROUP
V1: Final = "v1"
V2BETA1: Final = "v2beta1"
V2ALPHA1: Final = "v2alpha1"

V2ALPHA1_TRAIN_JOBS: Final = "v2alpha1trainjobs"
V2ALPHA1_TRAINING_RUNTIMES: Final = "v2alpha1trainingruntimes"
V2ALPHA1_CLUSTER_TRAINING_RUNTIMES: Final = "v2alpha1clustertrainingruntimes"
"""Plurals of kinds that today's API has under the same names; `v2alpha1` says why these are others."""

PYTORCH_JOB: Final = "PyTorchJob"
TF_JOB: Final = "TFJob"
XGBOOST_JOB: Final = "XGBoostJob"
PADDLE_JOB: Final = "PaddleJob"
JAX_JOB: Final = "JAXJob"
MPI_JOB: Final = "MPIJob"

# --- who manages a job

MANAGED_BY_TRAINING_OPERATOR: Final = "kubeflow.org/training-operator"
MANAGED_BY_MPI_OPERATOR: Final = "kubeflow.org/mpi-operator"
"""What `runPolicy.managedBy` says of a job that is ours; so does its absence."""
MANAGED_BY_MULTIKUEUE: Final = names.MANAGED_BY_MULTIKUEUE
"""A job that MultiKueue runs elsewhere: left alone here."""
GATE_MANAGED_BY: Final = "JobManagedBy"
"""The feature gate without which no job may set `runPolicy.managedBy`."""

# --- admission

DEFAULTER: Final = "defaulter.kubeflow.org"
VALIDATOR: Final = "validator.kubeflow.org"
"""Our webhook configurations for the older kinds; the old operator's are called otherwise and may be there too."""
CONVERT_PATH: Final = "/convert"
"""Where on the operator's webhook server objects are turned into another version of their kind."""

# --- replica types

MASTER: Final = "Master"
WORKER: Final = "Worker"
CHIEF: Final = "Chief"
PS: Final = "PS"
EVALUATOR: Final = "Evaluator"
LAUNCHER: Final = "Launcher"

# --- labels of pods and services

LABEL_JOB_NAME: Final = "training.kubeflow.org/job-name"
LABEL_JOB_ROLE: Final = "training.kubeflow.org/job-role"
LABEL_OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
LABEL_REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
"""The replica type in small letters."""
LABEL_REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
ROLE_MASTER: Final = "master"
ROLE_LAUNCHER: Final = "launcher"
ROLE_WORKER: Final = "worker"
"""Values of `LABEL_JOB_ROLE`: v1 sets it on the pod that the others look up to, mpi-operator on every pod."""

# --- conditions: their types; a reason is the kind followed by the type

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
CONDITIONS: Final = (CREATED, RUNNING, RESTARTING, SUSPENDED, SUCCEEDED, FAILED)

# --- policies

RESTART_ALWAYS: Final = "Always"
RESTART_ON_FAILURE: Final = "OnFailure"
RESTART_NEVER: Final = "Never"
RESTART_EXIT_CODE: Final = "ExitCode"
"""Exit codes from 128 on are tried again, the others are final; the pod itself gets Never."""
RESTART_POLICIES: Final = (RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER, RESTART_EXIT_CODE)

CLEAN_NONE: Final = "None"
CLEAN_RUNNING: Final = "Running"
CLEAN_ALL: Final = "All"
CLEAN_POD_POLICIES: Final = (CLEAN_NONE, CLEAN_RUNNING, CLEAN_ALL)

SUCCESS_DEFAULT: Final = ""
SUCCESS_ALL_WORKERS: Final = "AllWorkers"
"""TFJob's `successPolicy`: worker 0, or all of them, where there is no chief."""

RENDEZVOUS_BACKENDS: Final = ("c10d", "etcd", "etcd-v2")
NPROC_AUTO: Final = "auto"

MPI_OPENMPI: Final = "OpenMPI"
MPI_INTEL: Final = "Intel"
MPI_MPICH: Final = "MPICH"
MPI_IMPLEMENTATIONS: Final = (MPI_OPENMPI, MPI_INTEL, MPI_MPICH)
LAUNCHER_AT_STARTUP: Final = "AtStartup"
LAUNCHER_WAITS: Final = "WaitForWorkersReady"
"""MPIJob's `launcherCreationPolicy`."""


def pod_name(job: str, replica_type: str, index: int) -> str:
    """Name a pod, and the Service of the same name by which the others find it. A pod's successor has its name."""
    return f"{job}-{replica_type.lower()}-{index}"
