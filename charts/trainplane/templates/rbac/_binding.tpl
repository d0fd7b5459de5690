{{- /* A binding of a role to the operator's account; with a namespace, in that namespace alone. */ -}}
{{- define "trainplane.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "trainplane.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .role }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "trainplane.manager.name" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
