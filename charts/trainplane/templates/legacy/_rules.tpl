{{- /* Written by `make manifests` from deploy/legacy_rbac.py: change that. */ -}}

{{- define "trainplane.rules.legacy.jobs" -}}
{{- if include "trainplane.legacy" (list . "pytorchjobs") }}
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "tfjobs") }}
- apiGroups: [kubeflow.org]
  resources: [tfjobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "xgboostjobs") }}
- apiGroups: [kubeflow.org]
  resources: [xgboostjobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [xgboostjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [xgboostjobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "paddlejobs") }}
- apiGroups: [kubeflow.org]
  resources: [paddlejobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [paddlejobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [paddlejobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "jaxjobs") }}
- apiGroups: [kubeflow.org]
  resources: [jaxjobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [jaxjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [jaxjobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "mpijobs") }}
- apiGroups: [kubeflow.org]
  resources: [mpijobs]
  verbs: [delete, get, list, watch]
- apiGroups: [kubeflow.org]
  resources: [mpijobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [mpijobs/finalizers]
  verbs: [update]
{{- end }}
{{- if include "trainplane.legacy" (list . "pytorchjobs" "tfjobs" "xgboostjobs" "paddlejobs" "jaxjobs" "mpijobs") }}
- apiGroups: ['']
  resources: [pods]
  verbs: [create, delete, get]
- apiGroups: ['']
  resources: [services]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "trainplane.legacy" (list . "pytorchjobs" "paddlejobs") }}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "trainplane.legacy" (list . "mpijobs") }}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, delete, get, list, watch]
{{- end }}
{{- if and (include "trainplane.legacy" (list . "pytorchjobs" "tfjobs" "xgboostjobs" "paddlejobs" "jaxjobs" "mpijobs")) (eq (include "trainplane.legacy.gang" .) "volcano") }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if and (include "trainplane.legacy" (list . "pytorchjobs" "tfjobs" "xgboostjobs" "paddlejobs" "jaxjobs" "mpijobs")) (eq (include "trainplane.legacy.gang" .) "scheduler-plugins") }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [create, delete, get, list, patch, watch]
{{- end }}
{{- if include "trainplane.legacy" (list . "v2alpha1trainjobs") }}
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainjobs]
  verbs: [list, watch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainjobs/finalizers]
  verbs: [update]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainjobs]
  verbs: [create, get, patch]
{{- end }}
{{- if include "trainplane.legacy" (list . "v2alpha1trainjobs" "v2alpha1trainingruntimes") }}
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainingruntimes]
  verbs: [list, watch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainingruntimes/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1trainingruntimes/finalizers]
  verbs: [update]
- apiGroups: [trainer.kubeflow.org]
  resources: [trainingruntimes]
  verbs: [create, get, patch]
{{- end }}
{{- end }}

{{- define "trainplane.rules.legacy.cluster" -}}
{{- if include "trainplane.legacy" (list . "v2alpha1clustertrainingruntimes") }}
- apiGroups: [kubeflow.org]
  resources: [v2alpha1clustertrainingruntimes]
  verbs: [list, watch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1clustertrainingruntimes/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [v2alpha1clustertrainingruntimes/finalizers]
  verbs: [update]
- apiGroups: [trainer.kubeflow.org]
  resources: [clustertrainingruntimes]
  verbs: [create, get, patch]
{{- end }}
{{- end }}

{{- define "trainplane.rules.legacy.cluster.certificates" -}}
{{- if include "trainplane.legacy" (list . "mpijobs") }}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [mpijobs.kubeflow.org]
  verbs: [get, patch]
{{- end }}
{{- if include "trainplane.legacy" (list . "pytorchjobs" "tfjobs" "xgboostjobs" "paddlejobs" "jaxjobs" "mpijobs") }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [defaulter.kubeflow.org]
  verbs: [get, patch]
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [validator.kubeflow.org]
  verbs: [get, patch]
{{- end }}
{{- end }}
