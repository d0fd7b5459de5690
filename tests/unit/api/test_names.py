"""The names are a contract with programs that we do not ship: a change here is a change for all of them."""

from __future__ import annotations

from trainplane.api import names


def test_objects_of_a_train_job() -> None:
    assert {
        names.jobset_name("tj"),
        names.pod_group_name("tj"),
        names.snapshot_name("tj"),
        names.mpi_secret_name("tj"),
        names.mpi_hostfile_name("tj"),
        names.flux_entrypoint_name("tj"),
        names.flux_curve_name("tj"),
    } == {
        "tj",
        "tj-runtime-snapshot",
        "tj-mpi-ssh-auth",
        "tj-mpi-hostfile",
        "tj-flux-entrypoint",
        "tj-flux-curve",
    }


def test_where_pods_are() -> None:
    assert names.pod_hostname("tj", "node", 0, 1) == "tj-node-0-1"


def test_a_runtime_kind_is_named_with_its_group() -> None:
    assert names.runtime_key(names.GROUP, names.TRAINING_RUNTIME) == "TrainingRuntime.trainer.kubeflow.org"


def test_the_rank_is_the_completion_index() -> None:
    assert names.FIELD_PATH_COMPLETION_INDEX == "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def test_reserved_variables() -> None:
    assert {
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    } == names.TORCH_RESERVED
    assert {"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"} == names.XGBOOST_RESERVED
    assert {
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
    } == names.MPI_RESERVED


def test_each_part_of_a_train_job_has_its_container() -> None:
    assert set(names.CONTAINER_OF_ANCESTOR) == {*names.ANCESTORS, names.ANCESTOR_CACHE}
    assert names.CONTAINER_OF_ANCESTOR["trainer"] == "node"
