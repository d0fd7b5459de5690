"""Faults in what every TrainJob becomes: names, owners, patches, the TrainJob's own words, initializers, gangs."""

from __future__ import annotations

from tests.conformance.mutation.fault import faults_of

OBJECTS = (
    *faults_of(
        "render.pipeline",
        (
            "owner-missing",
            "objects that outlive their TrainJob",
            "namespace=plan.namespace, ownerReferences=[reference])",
            "namespace=plan.namespace)",
        ),
        ("owner-no-controller", "nobody controls the objects", '"controller": True,', '"controller": False,'),
        (
            "owner-unblocked",
            "a TrainJob goes before its objects",
            '"blockOwnerDeletion": True,',
            '"blockOwnerDeletion": False,',
        ),
    ),
    *faults_of(
        "render.plugins.jobset",
        ("suspend-lost", "a suspended TrainJob runs", '"suspend": plan.job.view.spec.suspend}', '"suspend": False}'),
        ("replicas", "two Jobs in place of one", "pods.set_replicas(1)", "pods.set_replicas(2)"),
        ("metadata-lost", "the template's labels are lost", ', **template["metadata"]}', "}"),
        (
            "patch-env",
            "variables patched that have a field of their own",
            'if container.get("env") and name in _MANAGED:',
            'if container.get("env") and not name:',
        ),
    ),
    *faults_of(
        "render.amounts",
        (
            "amounts-rounded",
            "half a CPU is a whole one",
            "str(Quantity.of(spec[name]))",
            "str(Quantity.of(spec[name]).value())",
        ),
    ),
    *faults_of(
        "api.names",
        ("name-snapshot", "the snapshot has another name", "-runtime-snapshot", "-snapshot"),
        ("name-mpi-secret", "MPI's Secret has another name", "-mpi-ssh-auth", "-mpi-ssh"),
        ("name-mpi-hosts", "MPI's ConfigMap has another name", "-mpi-hostfile", "-mpi-hosts"),
        ("name-flux-scripts", "Flux's ConfigMap has another name", "-flux-entrypoint", "-flux"),
        ("name-flux-key", "Flux's Secret has another name", "-flux-curve", "-flux-key"),
        ("name-host", "hosts by the pod before the Job", "{job_index}-{pod_index}", "{pod_index}-{job_index}"),
    ),
)

RESOLVED = faults_of(
    "render.resolve",
    (
        "annotations-lost",
        "the template's annotations are lost",
        'for key in ("labels", "annotations") if',
        'for key in ("labels",) if',
    ),
    (
        "labels-lost",
        "the template's labels are lost",
        'for key in ("labels", "annotations") if',
        'for key in ("annotations",) if',
    ),
    (
        "image-unheard",
        "the TrainJob's image has no effect",
        'container.set("image", said["image"]',
        'container.set("image", container.image',
    ),
    (
        "args-unheard",
        "the TrainJob's args have no effect",
        '(("command", _COMMAND), ("args", _ARGS))',
        '(("command", _COMMAND),)',
    ),
    (
        "command-unheard",
        "the TrainJob's command has no effect",
        '(("command", _COMMAND), ("args", _ARGS))',
        '(("args", _ARGS),)',
    ),
    ("command-emptied", "an empty command has no effect", "if words is not None:", "if words:"),
    ("env-unheard", "the TrainJob's variables have no effect", '*map(variable, said.get("env") or ())', "*()"),
    (
        "resources-swapped",
        "limits and requests swapped",
        '(("limits", limits), ("requests", requests)):',
        '(("limits", requests), ("requests", limits)):',
    ),
    (
        "resources-unheard",
        "requests have no effect",
        '(("limits", limits), ("requests", requests)):',
        '(("limits", limits),):',
    ),
    (
        "nodes-of-runtime",
        "the runtime's numNodes has no effect",
        "nodes = 1 if policy.num_nodes is None else policy.num_nodes",
        "nodes = 1",
    ),
    ("parallelism", "one pod of every other job", "pods.set_pods(max(pods.parallelism, 1), ", "pods.set_pods(1, "),
    (
        "patches-backwards",
        "the first patch stands, not the last",
        'sorted(patches, key=lambda patch: patch.get("manager") in _LAST)',
        "reversed(patches)",
    ),
    (
        "patch-metadata",
        "labels of a patch are lost",
        'merge.into(template["metadata"], metadata',
        "merge.into({}, metadata",
    ),
    (
        "patch-dropped",
        "patches have no effect",
        'merge.into(template["spec"], change.get("spec")',
        'merge.into({}, change.get("spec")',
    ),
    (
        "jobs-backwards",
        "jobs in another order",
        'key=lambda entry: order[entry["name"]])',
        'key=lambda entry: -order[entry["name"]])',
    ),
    (
        "tolerations-added",
        "every manager's tolerations are added",
        "if manager in _ADDS_TOLERATIONS else",
        "if manager else",
    ),
    (
        "launched-resources",
        "nodes of a launcher that trains are not heard of",
        "and pods.name == names.JOB_NODE",
        "and not pods.name",
    ),
)

PLANNED = (
    *faults_of(
        "render.plan",
        (
            "completions",
            "a Job that is complete too late",
            '{"parallelism": count, "completions": count}',
            '{"parallelism": count, "completions": count + 1}',
        ),
        (
            "trainer-by-name",
            "what trains is known by its name",
            "if pods.ancestor == names.ANCESTOR_TRAINER), None)",
            "if pods.name == names.JOB_NODE), None)",
        ),
        ("variable-empty", "a variable without a value is none", 'else {**entry, "value": ""}', "else entry"),
        ("env-from-lost", "sources of variables are replaced", '"envFrom"] = [*present, *', '"envFrom"] = [*'),
        (
            "mounts-by-name",
            "a volume is mounted once",
            '"volumeMounts", mounts, "mountPath"',
            '"volumeMounts", mounts, "name"',
        ),
        ("nodes-always-one", "one node", "set_pods(self.trainer.num_nodes, ", "set_pods(1, "),
    ),
    *faults_of(
        "render.plugins.plainml",
        ("plain-nodes", "numNodes has no effect", "plan.count_nodes()", "plan.framework"),
    ),
    *faults_of(
        "render.resources",
        ("gpus-unknown", "GPUs are none", "return bool(_GPU.search(name)) and not", "return not name and not"),
        ("cpus-limits", "CPUs by limits alone", '_quantity(container.requests, "cpu").value() or', "0 or"),
    ),
)

MERGED = faults_of(
    "render.merge",
    (
        "merge-forgets",
        "entries of the runtime are lost",
        "self._entries(present if isinstance(present, list) else [], ",
        "self._entries([], ",
    ),
    (
        "merge-labels",
        "labels of the runtime are lost",
        "if not isinstance(tree.get(key), dict):",
        'if key == "labels" or not isinstance(tree.get(key), dict):',
    ),
    ("merge-order", "the patch's entries come last", "return result + rest[taken:]", "return rest[taken:] + result"),
    (
        "merge-appends",
        "lists without a key grow",
        "self._write(tree, key, trees.without_nulls(patch))",
        "self._write(tree, key, [*(present or ()), *trees.without_nulls(patch)])",
    ),
    (
        "merge-ports",
        "an entry of a key is replaced",
        'if place is None or keyed.mode == "replace":',
        'if place is None or keyed.key != "name":',
    ),
    (
        "merge-values",
        "values stay the runtime's",
        "            else:\n                self._write(tree, key, value)",
        "            elif key not in tree:\n                self._write(tree, key, value)",
    ),
)

INITIALIZERS = faults_of(
    "render.plugins.initializers",
    ("init-uri", "nothing to fetch", '"value": source.storage_uri}', '"value": ""}'),
    ("init-env", "the initializer's variables are lost", "*map(variable, source.env), ", ""),
    ("init-secret", "credentials of a ConfigMap", '{"secretRef": {"name"', '{"configMapRef": {"name"'),
    ("init-model", "the model is fetched for a dataset", "getattr(initializer, part)", 'getattr(initializer, "model")'),
    (
        "init-container",
        "a runtime without the container will do",
        "container = pods.container(_container(ancestor))\n            if",
        "container = pods.containers[0]\n            if",
    ),
    (
        "init-job",
        "a runtime without the job will do",
        "if pods is None:\n                yield Finding(",
        "if pods is None:\n                _ = (",
    ),
)

GANGS = (
    *faults_of(
        "render.gang",
        ("gang-size", "a member too many", "for pods in self.members)", "for pods in self.members) + 1"),
        ("gang-resources", "one pod's resources for all", "times=pods.replicas * pods.count", "times=1"),
        ("gang-initializers", "initializers are members", "if pods.ancestor not in _INITIALIZERS]", "]"),
    ),
    *faults_of(
        "render.demand",
        (
            "gang-init-containers",
            "init containers do not count",
            "max(running.get(name, ZERO), starting.get(name, ZERO))",
            "running.get(name, ZERO)",
        ),
        ("gang-overhead", "overhead does not count", 'quantities(spec.get("overhead") or {})', "{}"),
    ),
    *faults_of(
        "render.plugins.coscheduling",
        ("coscheduling-label", "pods of no group", "{names.LABEL_COSCHEDULING_POD_GROUP: names", '{"group": names'),
        ("coscheduling-timeout", "another timeout", "policy.schedule_timeout_seconds,", "60,"),
        ("coscheduling-members", "one member", '"minMember": gang.size,', '"minMember": 1,'),
    ),
    *faults_of(
        "render.plugins.volcano",
        (
            "volcano-queue",
            "the queue is lost",
            "plan.template.annotations.get(names.ANNOTATION_VOLCANO_QUEUE),",
            "None,",
        ),
        (
            "volcano-priority",
            "the priority is lost",
            "next((name for name in reversed(priorities) if name), None)",
            "None",
        ),
        ("volcano-topology", "another tier", "policy.network_topology.highest_tier_allowed,", "9,"),
        ("volcano-label", "a label in place of the annotation", "pods.annotate_pods(", "pods.label_pods("),
        (
            "volcano-no-queue",
            "an empty queue is accepted",
            '.annotations.get(queue) == "":',
            '.annotations.get(queue) == "-":',
        ),
    ),
)

FAULTS = (*OBJECTS, *RESOLVED, *PLANNED, *MERGED, *INITIALIZERS, *GANGS)
