{{- /* Written by `make manifests` from deploy/monitoring.py: change that. */ -}}
{{- define "trainplane.alerts" -}}
- alert: TrainplaneDown
  expr: absent(up{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"} == 1)
  for: 5m
  labels:
    severity: critical
  annotations:
    summary: Prometheus reads metrics of no replica. If none runs, TrainJobs and runtimes cannot be written.
    description: 'kubectl get pods: none ready, read their logs and events; all ready, may Prometheus get /metrics?'
- alert: TrainplaneReplicaDown
  expr: up{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"} == 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $labels.pod }}` }} gives no metrics. The other replicas do its work; nothing is behind them.'
    description: kubectl describe pod and its log say why it is not ready
- alert: TrainplaneRestarts
  expr: changes(process_start_time_seconds{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}[1h]) > 3
  for: 0m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $labels.pod }}` }} starts again and again.'
    description: 'kubectl logs --previous has its last words; OOMKilled: raise manager.resources, see sizing'
{{- if .Values.manager.config.leaderElection.leaderElect }}
- alert: TrainplaneNobodyLeads
  expr: max(leader_election_master_status{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}) < 1
  for: 5m
  labels:
    severity: critical
  annotations:
    summary: Replicas run and none leads. TrainJobs are stored and do not start.
    description: the log says who holds the Lease; is it an operator elsewhere, or the reference? Can ours write it?
{{- end }}
- alert: TrainplaneReconcilesFail
  expr: sum(rate(controller_runtime_reconcile_errors_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}", controller="trainjob_controller"}[10m])) > 0.1
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: TrainJobs fail to be reconciled again and again.
    description: 'events TrainJobResourcesCreationFailed say what stands in the way: a quota, a webhook of others'
- alert: TrainplaneReconcilesGivenUp
  expr: sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}[15m])) > 0
  for: 0m
  labels:
    severity: info
  annotations:
    summary: 'An object of {{ `{{ $labels.controller }}` }} was given up: trying again would not help.'
    description: 'the log names it: an object that cannot be, or a fault of ours to report'
- alert: TrainplaneQueueLong
  expr: max by (name) (workqueue_depth{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}) > 100
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: More than a hundred keys of {{ `{{ $labels.name }}` }} wait, and have for ten minutes.
    description: 'reconciles slow: is the API server? All workers busy and a core full: give the operator more CPU'
- alert: TrainplaneReviewsFail
  expr: sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}", code!="200"}[5m])) > 0
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: Reviews of {{ `{{ $labels.webhook }}` }} end with {{ `{{ $labels.code }}` }}. The writes that asked for them are refused.
    description: 'the operator''s log says why: 500 is a fault of ours to report, 413 an object that is too large to be read'
- alert: TrainplaneReviewsSlow
  expr: histogram_quantile(0.99, sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}[10m]))) > 1
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: One in a hundred reviews of {{ `{{ $labels.webhook }}` }} takes over a second. After ten the write is refused.
    description: 'event_loop_lag_seconds high: more CPU, or fewer giants; else the API server is slow to be asked'
- alert: TrainplaneForbidden
  expr: sum by (method) (increase(rest_client_requests_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}", code="403"}[15m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: The API server forbids the operator a {{ `{{ $labels.method }}` }}.
    description: the log says which; compare the roles with the chart's, or with rbac.secretNamespaces for MPI and Flux
- alert: TrainplaneCannotReachAPIServer
  expr: sum(rate(rest_client_requests_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}", code="<error>"}[5m])) > 0.1 * sum(rate(rest_client_requests_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}[5m]))
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: More than one in ten requests gets no answer from the API server.
    description: does the API server run; does networkPolicy.apiServerPorts have its port; is DNS there?
- alert: TrainplaneWatchesFail
  expr: sum by (name, error) (increase(reflector_failures_total{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"}[15m])) > 10
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: The mirror of {{ `{{ $labels.name }}` }} breaks again and again ({{ `{{ $labels.error }}` }}).
    description: 'ForbiddenError: a right is missing; otherwise the way to the API server, or a proxy that cuts it'
- alert: TrainplaneSlow
  expr: event_loop_lag_seconds{namespace="{{ .Release.Namespace }}", job="{{ include "trainplane.service.name" . }}"} > 1
  for: 5m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $labels.pod }}` }} is more than a second late with everything.'
    description: give it more CPU; the log names objects that are heavy
{{- end }}
