"""Faults in what frameworks are told: Torch, torchtune, JAX, XGBoost, MPI, Flux."""

from __future__ import annotations

from tests.conformance.mutation.fault import faults_of

TORCH = faults_of(
    "render.plugins.torch",
    ("torch-nnodes", "a node too many", '"value": str(nodes)}', '"value": str(nodes + 1)}'),
    (
        "torch-nproc",
        "one process per node, whatever was asked for",
        '{"name": names.TORCH_NPROC_PER_NODE, "value": str(processes)}',
        '{"name": names.TORCH_NPROC_PER_NODE, "value": "1"}',
    ),
    ("torch-rank", "the rank under another name", "rank(names.TORCH_NODE_RANK)", 'rank("PET_RANK")'),
    ("torch-master-swapped", "the port in the place of the address", '"value": address}', '"value": str(port)}'),
    ("torch-master-port", "the next port", '"value": str(port)}', '"value": str(port + 1)}'),
    ("torch-opens-other", "another port opened", "open_port(container, port)", "open_port(container, port + 1)"),
    ("torch-nodes-unheard", "numNodes has no effect", "plan.count_nodes()", "plan.framework"),
    ("torch-cpus", "a process more than CPUs", "max(1, resources.cpus(node)))", "1 + resources.cpus(node))"),
    (
        "torch-procs-unheard",
        "numProcPerNode has no effect",
        "said = plan.trainer.num_proc_per_node if plan.trainer else None",
        "said = None",
    ),
    (
        "torch-gpus-counted",
        "GPUs counted where torch counts itself",
        "if said == _AUTO and not resources.gpus(node):",
        "if said == _AUTO:",
    ),
    (
        "torch-reserved",
        "torch's own variables may be set",
        "judge_reserved_at_once(plan, names.TORCH_RESERVED",
        "judge_reserved_at_once(plan, frozenset()",
    ),
    ("torch-first-node", "the second node leads", "return pods.endpoint(0)", "return pods.endpoint(1)"),
    ("torch-env-lost", "torch's variables reach no container", "container.set_env(*group)", "container.set_env()"),
)

TORCHTUNE = faults_of(
    "render.plugins.torchtune",
    ("tune-multinode", "the config of one node for many", '"_full_multinode"', '"_full"'),
    (
        "tune-one-gpu",
        "one GPU is not one device",
        "(self.processes == 1 or self.gpus == 1)",
        "self.processes == 1",
    ),
    ("tune-alone", "processes do not meet", "if tuning.meets else []", "if not tuning else []"),
    ("tune-managed", "the runtime's settings are lost", "tuning.config, *managed]", "tuning.config]"),
    ("tune-any-model", "any model is accepted", "if model not in MODELS:", "if model is None:"),
    (
        "tune-nodes",
        "two nodes where one is all",
        "if tuning.nodes > 1 and model != ",
        "if tuning.nodes > 2 and model != ",
    ),
    ("tune-managed-arg", "an argument of the runtime's may be set", "if key in MANAGED:", "if key is None:"),
    ("tune-qlora", "QLoRA refused where it works", "if model == QWEN_2_5_1_5B:", "if model != QWEN_2_5_1_5B:"),
)

TORCHRUN = faults_of(
    "render.plugins.torchrun",
    ("torchrun-python", "python in place of torchrun", 'set("command", COMMAND)', 'set("command", ["python"])'),
    ("torchrun-port", "MASTER_PORT is another", "str(meeting.port)}", "str(meeting.port + 1)}"),
    ("torchrun-overrides", "a TrainJob's MASTER_ADDR is replaced", " if name not in said))", "))"),
)

JAX = faults_of(
    "render.plugins.jax",
    ("jax-processes", "a process too few", "str(meeting.nodes)", "str(meeting.nodes - 1)"),
    ("jax-rank", "the rank under another name", "rank(names.JAX_PROCESS_ID)", 'rank("JAX_PROCESS")'),
    ("jax-address", "the address lacks its port", "meeting.address}", "meeting.host}"),
    ("jax-overrides", "a TrainJob's own variable is replaced", "(*plan.env_not_overridden(variables))", "(*variables)"),
    ("jax-port", "another port opened", "(meeting.container, meeting.port)", "(meeting.container, meeting.port + 1)"),
    ("jax-nodes", "numNodes has no effect", "plan.count_nodes()", "plan.framework"),
)

XGBOOST = faults_of(
    "render.plugins.xgboost",
    ("xgboost-workers", "one node's workers for all", "meeting.nodes * _workers_of_node(", "_workers_of_node("),
    ("xgboost-uri", "the port in the tracker's address", '"value": meeting.host}', '"value": meeting.address}'),
    ("xgboost-port", "another port", "str(meeting.port)}", "str(meeting.nodes)}"),
    ("xgboost-rank", "the rank under another name", "rank(names.XGBOOST_TASK_ID)", 'rank("DMLC_RANK")'),
    (
        "xgboost-reserved",
        "XGBoost's own variables may be set",
        "names.XGBOOST_RESERVED, self.name",
        "frozenset(), self.name",
    ),
    ("xgboost-gpus", "GPUs do not count", "max(1, resources.gpus(container))", "1"),
    ("xgboost-lost", "XGBoost's variables are lost", "if _is_meant(plan) else None", "if plan is None else None"),
)

MEETING = faults_of(
    "render.rendezvous",
    ("rank-of-another", "every pod has its name for a rank", "names.FIELD_PATH_COMPLETION_INDEX", '"metadata.name"'),
    (
        "port-other",
        "another port than the runtime says",
        "return default if said is None else said",
        "return default if said is None else said + 1",
    ),
    (
        "port-named",
        "the port has a name",
        'container.set_ports({"containerPort": port})',
        'container.set_ports({"containerPort": port, "name": "meet"})',
    ),
)

MPI = faults_of(
    "render.plugins.mpi",
    ("mpi-launcher-node", "the launcher is no node", "count = max(count - 1, 1)", "count = max(count, 1)"),
    ("mpi-nodes-unheard", "numNodes has no effect", "node.set_pods(count, ", "node.set_pods(node.count, "),
    (
        "mpi-slots-said",
        "a slot more than asked for",
        "        return said\n    if policy",
        "        return said + 1\n    if policy",
    ),
    ("mpi-slots-policy", "the runtime's slots have no effect", "return policy.num_proc_per_node", "return 1"),
    ("mpi-slots-gpus", "GPUs do not count", "max(1, resources.accelerators(container))", "1"),
    (
        "mpi-hosts-launcher",
        "the launcher is in no hostfile",
        "{names.JOB_NODE, names.JOB_LAUNCHER} if policy.run_launcher_as_node else {names.JOB_NODE}",
        "{names.JOB_NODE}",
    ),
    ("mpi-hostfile", "a hostfile that mpirun cannot read", 'f" slots={slots}', 'f" slot={slots}'),
    ("mpi-secret-type", "a Secret of another type", '"kubernetes.io/ssh-auth"', '"Opaque"'),
    ("mpi-secret-mutable", "keys that can be changed", '"immutable": True,', '"immutable": False,'),
    (
        "mpi-keys-swapped",
        "the private key made public",
        "names.MPI_SSH_PUBLIC_KEY: public}",
        "names.MPI_SSH_PUBLIC_KEY: private}",
    ),
    ("mpi-key-short", "a weaker key", "ec.SECP521R1()", "ec.SECP256R1()"),
    ("mpi-authorized", "nodes trust nobody", '"path": "authorized_keys"', '"path": "known"'),
    ("mpi-ssh-mount", "keys where ssh does not look", '"mountPath": policy.ssh_auth_mount_path', '"mountPath": "/ssh"'),
    (
        "mpi-hostfile-mount",
        "the hostfile where nobody looks",
        '"mountPath": names.MPI_HOSTFILE_MOUNT_PATH}',
        '"mountPath": "/hosts"}',
    ),
    ("mpi-hostfile-env", "mpirun does not know the hostfile", "names.OPENMPI_HOSTFILE: _", '"OMPI_HOSTFILE": _'),
    ("mpi-fqdn", "hosts by short names", 'names.OPENMPI_KEEP_FQDN: "true"', 'names.OPENMPI_KEEP_FQDN: "false"'),
    (
        "mpi-slots-env",
        "one slot by default",
        "names.OPENMPI_DEFAULT_SLOTS: str(slots)",
        'names.OPENMPI_DEFAULT_SLOTS: "1"',
    ),
    (
        "mpi-reserved",
        "MPI's own variables may be set",
        'judge_reserved_at_once(plan, names.MPI_RESERVED, "MPI")',
        'judge_reserved_at_once(plan, frozenset(), "MPI")',
    ),
    ("mpi-alone", "two nodes on a launcher alone", "(nodes or 1) > 1 and not", "(nodes or 1) > 99 and not"),
    (
        "mpi-node-keys",
        "nodes have no keys",
        "if pods.name in {names.JOB_NODE, names.JOB_LAUNCHER})",
        "if pods.name == names.JOB_LAUNCHER)",
    ),
    (
        "mpi-key-open",
        "everybody reads the key",
        "return _FOR_ALL if _user(pods) and not in_group",
        "return _FOR_ALL if pods",
    ),
    ("mpi-env-replaced", "the runtime's variables are replaced", ' if entry["name"] not in said))', "))"),
    (
        "mpi-settings",
        "ssh checks no host",
        "StrictHostKeyChecking yes",
        "StrictHostKeyChecking no",
    ),
)

FLUX = faults_of(
    "render.plugins.flux",
    (
        "flux-installer",
        "another image installs Flux",
        "_settings(meeting)[names.FLUX_VIEW_IMAGE]",
        "_settings(meeting)[names.FLUX_QUEUE_POLICY]",
    ),
    (
        "flux-volume",
        "a volume of another name",
        '{"name": names.FLUX_SPACK_VOLUME, "emptyDir"',
        '{"name": "spack", "emptyDir"',
    ),
    ("flux-key-open", "everybody reads the certificate", '"defaultMode": 0o400', '"defaultMode": 0o644'),
    ("flux-tasks", "one task per node", "-n {meeting.nodes * processes}", "-n {meeting.nodes}"),
    ("flux-hosts", "the first host alone", "[{_span(meeting.nodes)}]", "[{_span(1)}]"),
    (
        "flux-name-taken",
        "an init container is replaced",
        "container.name == names.FLUX_INSTALLER for",
        'container.name == "" for',
    ),
    ("flux-certificate", "a certificate that no broker reads", 'return {"data": {_CURVE:', 'return {"data": {"key":'),
    (
        "flux-words-lost",
        "the runtime's args are lost",
        "_line([*container.command, *container.args])",
        "_line([*container.command])",
    ),
    ("flux-script", "scripts that do nothing", "{head}{body}", "{head}"),
    ("flux-procs", "numProcPerNode has no effect", "return max(1, said)", "return 1"),
    ("flux-port", "another port", '"port": str(meeting.port)', '"port": str(meeting.port + 1)'),
    ("flux-install-mount", "the installer sees no scripts", '"volumeMounts": [flux, script]', '"volumeMounts": [flux]'),
)

FAULTS = (*TORCH, *TORCHTUNE, *TORCHRUN, *JAX, *XGBOOST, *MEETING, *MPI, *FLUX)
