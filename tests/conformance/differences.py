"""The differences that we want, each with its reason; whatever else differs is a fault. `docs/conformance.md` has them.

A difference that no case shows any more must go from here: a test says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.conformance import (
    controller_differences,
    flux_differences,
    framework_differences,
    gang_differences,
    mpi_differences,
    ports,
    refusals,
    rendered,
    torch_differences,
    warned,
)
from tests.conformance import predicates as it
from tests.conformance.refusals import refused
from tests.conformance.warned import warns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conformance.cases import Case
    from tests.conformance.compare import Difference

    Judge = Callable[[Difference], bool]


@dataclass(frozen=True)
class Declared:
    """A difference that we want."""

    id: str
    what: str
    reason: str
    matches: Judge


WORDS = (
    Declared(
        "wording",
        "messages of the conditions Suspended and DeadlineExceeded",
        "they say what happened and what to do; type, status and reason are the reference's",
        it.is_worded_otherwise,
    ),
    Declared(
        "precise-field",
        "a refusal names the field itself, not an object around it",
        "the person sees which line is meant; code and rule are the reference's",
        it.is_more_precise,
    ),
    Declared(
        "warns",
        "warnings for a deprecated TrainingRuntime, which name its successor where the annotation "
        "`trainplane.dev/replaced-by` does, for a TrainingRuntime edited into what would be refused, for a patch of "
        "`name` or `finalizers`",
        "the reference warns for ClusterTrainingRuntimes alone and lets the rest pass in silence (§11.12, 26)",
        warns(warned.DEPRECATED, warned.WRONG, warned.VAIN),
    ),
    Declared(
        "told-of-spec",
        "no warning of a deprecated runtime for an edit that leaves a TrainJob's `spec` as it is",
        "controllers write labels and finalizers, and can do nothing about it; whoever writes the spec is told",
        warned.is_untold,
    ),
)

ADMISSION = (
    Declared(
        "ghost-target",
        "403 for a patch of a job or container that the runtime does not have, or has as the other kind of container",
        "the reference merges before it looks, so the check cannot fail and the job never starts (§11.1, 12)",
        refused(refusals.ghosts),
    ),
    Declared(
        "runtime-gone",
        "edits of a TrainJob whose runtime is gone or has changed are accepted",
        "they are judged by the snapshot that the job runs on (§11.5)",
        it.accepted_by_snapshot,
    ),
    Declared(
        "fixed-means-fixed",
        "403 when `trainer`, `initializer`, `activeDeadlineSeconds` or a fixed field of a patch is added or removed",
        "rules of the schema do not see it; the job would not be what its spec says, or never apply again (§11.10)",
        refused(refusals.fixed),
    ),
    Declared(
        "jobset-fixed",
        "403 for an edit of a suspended job's patches that JobSet refuses",
        "the reference accepts it and then fails at every reconcile (§11.11)",
        refused(refusals.frozen),
    ),
    Declared(
        "long-names",
        "403 for a name that is too long for the pods it becomes",
        "the reference accepts it, and no pod is ever made (§11.18)",
        refused(refusals.long_names),
    ),
    Declared(
        "numbers",
        "403 for `numNodes` below 1, and for `numProcPerNode` below 1 with Torch and MPI",
        "the reference's main branch refuses them too; v2.3 runs something else in silence",
        refused(refusals.numbers),
    ),
    Declared(
        "too-many-pods",
        "403 for more pods than a TrainJob may have, 32,768 unless an admin says otherwise, 422 above 100,000 nodes",
        "one TrainJob must not take the memory of whoever lists its nodes; Kubernetes runs no Job of more than 100,000",
        refused(refusals.too_many),
    ),
    Declared(
        "requests-over-limits",
        "403 for `resourcesPerNode` that, with the runtime's, request more than the limit",
        "no pod may have them, and the reference's job waits for ever (§11.15)",
        refused(refusals.over_limits),
    ),
    Declared(
        "no-mount-needed",
        "an initializer needs no volumeMount named `initializer`",
        "the reference's rule refuses its own data cache runtime and its own example (§11.2)",
        it.accepted("must have volumeMount with name - initializer"),
    ),
    Declared(
        "no-such-claim",
        "403 for a `pvc://` URI whose claim can be none of that name",
        "the reference accepts any scheme, and its initializer ends with an error",
        refused(refusals.claims),
    ),
    Declared(
        "nothing-added",
        "a patch's volume `projected` without `sources` is accepted, and a claim's `dataSource` without `apiGroup`",
        "the schema lets them out; the reference's webhook writes `null` into them, which the schema refuses",
        it.accepted(r'(projected\.sources|dataSource(Ref)?\.apiGroup) in body must be of type (array|string): "null"'),
    ),
    Declared(
        "said-twice",
        "403 for a patch that mounts two volumes at one path of a container",
        "one of them would be lost; the reference accepts the TrainJob, and then fails at every reconcile (§11.12)",
        refused(refusals.twice),
    ),
    Declared(
        "patched-as-written",
        "patches of a TrainJob whose `resourcesPerNode` has an amount such as `cpu: 3` or `1000m` are accepted",
        "the reference's webhook writes the amount anew once somebody gives patches, and the schema refuses that as an "
        "edit of `trainer`: Kueue can never start such a job",
        it.accepted_as_written,
    ),
    Declared(
        "runtime-counted",
        "403 for an edit of a runtime that changes the pods of unfinished TrainJobs that Kueue counts, and for its "
        "deletion",
        "Kueue reads the runtime as it stands: it would stop a job that runs, or never give back its quota",
        refused(refusals.counted_runtimes),
    ),
    Declared(
        "no-such-pod",
        "403 for a TrainJob of which the API server would refuse every Job: mounts of volumes that are not there, "
        "labels, tolerations, devices by halves or with unequal sides",
        "the reference accepts it, JobSet tries for ever, the queue holds quota, and nobody is told",
        refused(refusals.impossible_pods),
    ),
    Declared(
        "unheard-trainer",
        "403 for a `spec.trainer` on a runtime that has no container for it",
        "the reference drops image, command, resources and nodes without a word, and runs the runtime's default",
        refused(refusals.unheard),
    ),
    Declared(
        "lost-jobs",
        "403 for a runtime whose `dependsOn`, `successPolicy` or `failurePolicy` names a job that it does not have",
        "JobSet refuses every JobSet of it",
        refused(refusals.lost_jobs),
    ),
    Declared(
        "cannot-be-counted",
        "403 for a queued TrainJob with `resourcesPerNode` whose training containers have different amounts beside it",
        "Kueue takes `resourcesPerNode` for all that each has, and would count less than runs",
        refused(refusals.uncountable),
    ),
    Declared(
        "kueues-own",
        "Kueue's entry comes back to a list that is written without it; in a new TrainJob it is left out, with a "
        "warning",
        "without it Kueue can never start the job; who writes it under Kueue's name says where pods run",
        it.is_kueues_own,
    ),
    Declared(
        "runtime-used",
        "a warning for the deletion of a runtime that unfinished TrainJobs use",
        "they go on with their snapshots, but no new TrainJob can use it",
        warns(warned.USED),
    ),
    Declared(
        "nothing-to-run",
        "a warning for a new TrainJob where neither it nor its runtime has a command or arguments",
        "it is Complete in seconds and has trained nothing, since images of frameworks start a shell",
        warns(warned.NOTHING),
    ),
    Declared(
        "mpi-spellings",
        "`mpiImplementation` may be `Intel`, `IntelMPI` or `MPICH`; stored is OpenMPI, with an annotation",
        "the documents promise it; the reference's schema refuses all but OpenMPI ([mpi](frameworks/mpi.md))",
        it.accepted(r"mpiImplementation: Unsupported value"),
    ),
    Declared(
        "long-lists",
        "more than 128 arguments and variables are accepted",
        "see above: rules said otherwise",
        it.accepted(r"must have at most 128 items"),
    ),
)

RENDERING = (
    Declared(
        "torch-without-trainer",
        "`PET_*` and `MASTER_*` variables and the port also without `spec.trainer`",
        "a runtime's nodes belong together whatever the TrainJob adds; the reference's pods train alone (§11.14)",
        torch_differences.is_torch_without_trainer,
    ),
    Declared(
        "torchrun",
        "`torchrun` is the command of a Torch job that gives `args`, where neither it nor its runtime gives a command",
        "the documents promise it; the reference runs the image's own program, which most images have as a shell",
        torch_differences.runs_torchrun,
    ),
    Declared(
        "master",
        "`MASTER_ADDR` and `MASTER_PORT` beside the `PET_*` variables, unless the TrainJob or its runtime sets them",
        "the documents promise it, and processes that torchrun does not start look there; its children get its own",
        torch_differences.knows_master,
    ),
    Declared(
        "claim-mounted",
        "the claim of an initializer's `pvc://` URI is mounted in its container at `/pvc/CLAIM`, to be read",
        "ours fetches from claims ([data](data.md)); the reference's knows no such scheme",
        rendered.mounts_claim,
    ),
    Declared(
        "accelerators",
        "`PET_NPROC_PER_NODE` is `auto` for slices of GPUs, for claimed devices (DRA), and for a runtime's GPUs when "
        "the TrainJob asks for CPUs; "
        "for TPUs, Neuron devices and Gaudis it is their number",
        "the reference counts CPUs there, on a pod that has an accelerator (§11.15)",
        torch_differences.counts_accelerators,
    ),
    Declared(
        "ports-kept",
        "the Torch port is added beside a runtime's unnamed port, and a port 29500 of the runtime keeps its name",
        "the reference replaces them, and of a runtime with two such ports can make no JobSet, and perhaps nothing "
        "that comes with it (§11.13)",
        ports.keeps,
    ),
    Declared(
        "subdomain",
        "`PET_MASTER_ADDR` follows the runtime's `network.subdomain`",
        "the reference's address does not resolve there (§11.16)",
        torch_differences.follows_subdomain,
    ),
    Declared(
        "volume-replaced",
        "a patched volume takes the place of the runtime's of that name",
        "the reference makes one volume of two sources, which no pod may have (§11.12)",
        rendered.is_other_volume_source,
    ),
    Declared(
        "variable-replaced",
        "a patched variable takes the place of the runtime's of that name",
        "the reference makes one variable of a value and a source, which no pod may have (§11.12)",
        rendered.is_other_value,
    ),
    Declared(
        "kueue-adds-tolerations",
        "tolerations of the manager `kueue.x-k8s.io/manager` are added to those of the runtime and of other managers",
        "Kueue gives those of its flavor and does not mean to take away others', as the reference does (§11.12)",
        rendered.adds_tolerations_of_kueue,
    ),
    Declared(
        "kueue-last",
        "what the manager `kueue.x-k8s.io/manager` says of pods stands, wherever its entry is in the list",
        "the reference takes the last entry: charged for one flavor, pods would run on another",
        rendered.stands_last,
    ),
    Declared(
        "equal-sides",
        "of a device or huge pages, what a TrainJob says of limit or request holds for both",
        "the reference leaves the runtime's amount on the other side, which no pod may have",
        rendered.sets_both_sides,
    ),
    Declared(
        "resources-without-policy",
        "`resourcesPerNode` reaches the pods of a runtime without `mlPolicy`",
        "the reference drops it there; Kueue 0.19 counts it",
        rendered.has_no_policy,
    ),
    Declared(
        "kueue-counts-all",
        "`resourcesPerNode` of a TrainJob that Kueue counts is stored as its nodes will have it, the runtime's amounts "
        "included",
        "Kueue takes it to replace the runtime's, and would count a pod with GPUs as one without",
        rendered.is_spelt_out,
    ),
    Declared(
        "nothing-dropped",
        "`resourcesPerNode.claims` and a variable's `fileKeyRef` reach the pod",
        "the reference drops them (§11.15, 21)",
        rendered.is_kept_by_us,
    ),
    Declared(
        "metadata-of-patches",
        "of a patch's metadata only labels and annotations are taken",
        "a `name` or `finalizers` on a pod template breaks pods; the API says labels and annotations (§11.12)",
        rendered.is_dropped_metadata,
    ),
    Declared(
        "amounts-as-written",
        "amounts in a TrainJob and in a snapshot stay as their author wrote them (`cpu: 2`, `1000m`); in the JobSet "
        'they are as the reference writes them (`"2"`, `"1"`)',
        "a document is its author's; only what we render is ours to write",
        rendered.is_amount_as_written,
    ),
    Declared(
        "go-zero",
        "zeros and empty texts, lists and maps that a Go struct drops or adds (`coordinator.jobIndex: 0`, "
        '`resourceFieldRef.containerName: ""`, `labels: {}`)',
        "a runtime's field passes through as its author wrote it; the meaning is the same",
        rendered.is_go_zero,
    ),
)

CONTROLLER = tuple(Declared(*row) for row in controller_differences.ROWS)


def _of(cases: Callable[[Case], bool], rows: Iterable[tuple[str, str, str, Judge]]) -> tuple[Declared, ...]:
    """Return rows whose predicates judge some cases alone."""

    def within(judge: Judge) -> Judge:
        return lambda found: cases(found.case) and judge(found)

    return tuple(Declared(name, what, reason, within(judge)) for name, what, reason, judge in rows)


FRAMEWORKS = (
    *_of(framework_differences.is_of_framework, framework_differences.ROWS),
    *_of(flux_differences.is_of_flux, flux_differences.ROWS),
    *_of(mpi_differences.is_of_mpi, mpi_differences.ROWS),
)
GANGS = _of(gang_differences.has_gang, gang_differences.ROWS)

DECLARED: tuple[Declared, ...] = (*WORDS, *ADMISSION, *RENDERING, *FRAMEWORKS, *GANGS, *CONTROLLER)


def explain(difference: Difference) -> Declared | None:
    """Return what declares a difference, or nothing."""
    return next((declared for declared in DECLARED if declared.matches(difference)), None)


def unexplained(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences that nothing declares."""
    return [difference for difference in differences if explain(difference) is None]


def table(declared: Iterable[Declared]) -> str:
    """Return the rows of a table in `docs/conformance.md`."""
    return "".join(f"| `{one.id}` | {one.what} | {one.reason} |\n" for one in declared)


def tally(differences: Iterable[Difference]) -> Counter[str]:
    """Return how often each declared difference was seen, by id."""
    return Counter(declared.id for declared in map(explain, differences) if declared)
