{{- /* Written by `make manifests` from deploy/rbac.py: change that. */ -}}

{{- define "trainplane.rules.jobs" -}}
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs]
  verbs: [get, list, watch]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs/status]
  verbs: [patch]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs]
  verbs: [patch]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs/finalizers]
  verbs: [update]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainingruntimes]
  verbs: [get, list, patch, watch]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: ['']
  resources: [pods]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [pods/log]
  verbs: [get]
- apiGroups: ['']
  resources: [configmaps]
  verbs: [create, get, patch]
- apiGroups: ['']
  resources: [configmaps]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [events]
  verbs: [create, patch]
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, patch]
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [create, patch]
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [services]
  verbs: [create, patch]
- apiGroups: ['']
  resources: [services]
  verbs: [list, watch]
{{- end }}

{{- define "trainplane.rules.secrets" -}}
- apiGroups: ['']
  resources: [secrets]
  verbs: [create, get]
{{- end }}

{{- define "trainplane.rules.cluster" -}}
- apiGroups: [trainer.kubeflow.org]
  resources: [clustertrainingruntimes]
  verbs: [get, list, patch, watch]
{{- end }}

{{- define "trainplane.rules.cluster.certificates" -}}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [defaulter.trainer.kubeflow.org]
  verbs: [get, patch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [validator.trainer.kubeflow.org]
  verbs: [get, patch]
{{- end }}

{{- define "trainplane.rules.cluster.metrics" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{- define "trainplane.rules.cluster.progress" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}

{{- define "trainplane.rules.election" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "trainplane.lease.name" . }}]
  verbs: [get, update]
{{- end }}

{{- define "trainplane.rules.own.certificates" -}}
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{{ include "trainplane.secret.name" . }}]
  verbs: [get, list, update, watch]
{{- end }}
