"""What is installed, from one source: roles from the verbs that the code uses, templates from plain manifests.

`python -m deploy` writes the files and `--check` tells which are stale. Nothing here runs in a cluster.

| written | from |
|---|---|
| `charts/trainplane/templates/_rules.tpl` | `deploy.rbac` |
| `manifests/hub/rbac.yaml` | `deploy.hub_rbac` |
| `charts/trainplane/templates/crds/` | `manifests/crds/`, which are the types' |
| `charts/trainplane/templates/legacy/` | `manifests/crds-legacy/`, `deploy.legacy`, `deploy.legacy_rbac` |
| `manifests/legacy/`, the settings of `manifests/overlays/legacy` | the same |
| `charts/trainplane/templates/runtimes/` | `runtimes/` |
| `charts/trainplane/templates/operator/`, `hub/` | `manifests/operator/`, `manifests/hub/` |
| `charts/trainplane/values.schema.json` | `deploy.schema`, with the Configuration's types |
| `files/dashboard.json` and `templates/_alerts.tpl` there, alerts of `docs/operations.md` | `deploy.monitoring` |
| `docs/values.md` | `charts/trainplane/values.yaml` and the schema |

`python -m deploy.kustomize` renders the chart into `manifests/base`: what is installed by kustomize is what the chart
installs (`make kustomize`; it needs the lab's helm, so `tests/install` checks it and not `make check`).

`python -m deploy.package` leaves the chart as it is published: with JobSet's own inside (`make chart`, `make release`).
"""
