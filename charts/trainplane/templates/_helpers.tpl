{{- /* Names. They are those of the reference's chart, made from this chart's name. */ -}}
{{- define "trainplane.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "trainplane.fullname" -}}
{{- $name := include "trainplane.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "trainplane.manager.name" -}}
{{ include "trainplane.fullname" . }}-controller-manager
{{- end }}

{{- define "trainplane.lease.name" -}}
{{ .Values.manager.config.leaderElection.resourceName | default "trainer.kubeflow.org" }}
{{- end }}

{{- define "trainplane.lease.namespace" -}}
{{ .Values.manager.config.leaderElection.resourceNamespace | default .Release.Namespace }}
{{- end }}

{{- define "trainplane.service.name" -}}
{{ .Values.manager.config.certManagement.webhookServiceName | default (include "trainplane.manager.name" .) }}
{{- end }}

{{- define "trainplane.secret.name" -}}
{{ .Values.manager.config.certManagement.webhookSecretName | default (printf "%s-webhook-cert" (include "trainplane.fullname" .)) }}
{{- end }}

{{- /* Labels. Selectors have the first part alone: a Deployment's selector never changes. */ -}}
{{- define "trainplane.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trainplane.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- with .Values.manager.selectorLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trainplane.labels" -}}
{{ include "trainplane.selectorLabels" . }}
app.kubernetes.io/part-of: kubeflow
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with .Values.manager.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Images. */ -}}
{{- define "trainplane.image" -}}
{{- $tag := .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}:{{ $tag }}
{{- end }}

{{- define "trainplane.initializers.image" -}}
{{- include "trainplane.podImage" (list . .Values.initializers "trainplane/initializers") }}
{{- end }}

{{- define "trainplane.cache.image" -}}
{{- include "trainplane.podImage" (list . .Values.dataCache "trainplane/cache") }}
{{- end }}

{{- /* Of a release that is upgraded with its former values, the default's. */ -}}
{{- define "trainplane.podImage" -}}
{{- $image := merge (dict) ((index . 1).image | default dict) (dict "registry" "ghcr.io" "repository" (index . 2)) }}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}:{{ $image.tag | default (printf "v%s" (index . 0).Chart.AppVersion) }}
{{- end }}

{{- define "trainplane.runtimeImage" -}}
{{- with . }}{{ with .repository }}{{ with $.registry }}{{ . }}/{{ end }}{{ . }}:{{ $.tag | default "v2.3.0" }}{{ end }}{{ end }}
{{- end }}

{{- /* A runtime is wanted by its switch or with all, and needs its CRD to be known when the release is made. */ -}}
{{- define "trainplane.runtimeEnabled" -}}
{{- $root := index . 0 }}
{{- $wanted := or $root.Values.runtimes.defaultEnabled (index . 1).enabled }}
{{- if and $wanted (include "trainplane.runtimesKnown" $root) }}true{{ end }}
{{- end }}

{{- define "trainplane.runtimesKnown" -}}
{{- if or (not .Values.crds.enabled) (.Capabilities.APIVersions.Has "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime") }}true{{ end }}
{{- end }}

{{- /* Who makes the certificate: the operator, cert-manager, or somebody who fills the Secret. */ -}}
{{- define "trainplane.ownCertificates" -}}
{{- if and .Values.manager.config.certManagement.enable (not .Values.certManager.enabled) }}true{{ end }}
{{- end }}

{{- /* An operator of one namespace has webhooks of its own, for that namespace. */ -}}
{{- define "trainplane.webhook.name" -}}
{{- $root := index . 0 }}
{{- index . 1 }}.{{ with $root.Values.manager.watchNamespace }}{{ . }}.{{ end }}{{ index . 2 }}
{{- end }}

{{- /* Whether any of these older kinds is served; a release that is upgraded with its former values serves none. */ -}}
{{- define "trainplane.legacy" -}}
{{- $served := dig "legacy" "kinds" list (first .).Values.manager.config }}
{{- range rest . }}{{ if has . $served }}true{{ end }}{{ end }}
{{- end }}

{{- define "trainplane.legacy.gang" -}}
{{- dig "legacy" "gangSchedulerName" "" .Values.manager.config }}
{{- end }}

{{- define "trainplane.webhook.place" -}}
{{- with .Values.manager.watchNamespace }}
namespaceSelector:
  matchLabels: {kubernetes.io/metadata.name: {{ . }}}
{{- end }}
{{- end }}

{{- define "trainplane.webhook.metadata" -}}
labels:
  {{- include "trainplane.labels" . | nindent 2 }}
{{- if .Values.certManager.enabled }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "trainplane.secret.name" . }}
{{- end }}
{{- end }}

{{- /* The port of an address as `:8443` or `127.0.0.1:8443`; empty if it is off. */ -}}
{{- define "trainplane.port" -}}
{{- if not (has . (list "" "0")) }}{{ regexFind "[0-9]+$" . }}{{ end }}
{{- end }}

{{- /* Whether who reads metrics is asked for a token. */ -}}
{{- define "trainplane.metricsAsk" -}}
{{- $metrics := .Values.manager.config.metrics }}
{{- if and (include "trainplane.port" $metrics.bindAddress) $metrics.secureServing $metrics.auth.enabled }}true{{ end }}
{{- end }}

{{- /* Whether pods report progress: unless the gate is off. Who asks whose tokens theirs are needs a right on the cluster, so an operator of one namespace is told to. */ -}}
{{- define "trainplane.progress" -}}
{{- $gate := toString .Values.manager.config.featureGates.TrainJobStatus }}
{{- if or (eq $gate "true") (not (or .Values.manager.watchNamespace (eq $gate "false"))) }}true{{ end }}
{{- end }}

{{- /* The Configuration: the values as they are, but for names that the release decides. */ -}}
{{- define "trainplane.configuration" -}}
{{- $config := deepCopy .Values.manager.config }}
{{- $kinds := dict "trainJob" "TrainJob" "trainingRuntime" "TrainingRuntime" "clusterTrainingRuntime" "ClusterTrainingRuntime" }}
{{- $counts := dict }}
{{- range $name, $count := $config.controller.groupKindConcurrency }}
{{- $_ := set $counts (printf "%s.trainer.kubeflow.org" (get $kinds $name)) (int $count) }}
{{- end }}
{{- $_ := set $config.controller "groupKindConcurrency" $counts }}
{{- $_ := set $config.certManagement "enable" (eq (include "trainplane.ownCertificates" .) "true") }}
{{- $_ := set $config.certManagement "webhookServiceName" (include "trainplane.service.name" .) }}
{{- $_ := set $config.certManagement "webhookSecretName" (include "trainplane.secret.name" .) }}
{{- if and .Values.manager.watchNamespace (not (include "trainplane.progress" .)) }}
{{- $_ := set $config.featureGates "TrainJobStatus" false }}
{{- end }}
{{- /* What sends output is in the initializers' image; the operator knows that of its own release. */ -}}
{{- $image := include "trainplane.initializers.image" . }}
{{- if and (not (dig "output" "image" "" $config)) (ne $image (printf "ghcr.io/trainplane/initializers:v%s" .Chart.AppVersion)) }}
{{- $_ := set $config "output" (dict "image" $image) }}
{{- end }}
{{- $cache := include "trainplane.cache.image" . }}
{{- if and (not (dig "cache" "image" "" $config)) (ne $cache (printf "ghcr.io/trainplane/cache:v%s" .Chart.AppVersion)) }}
{{- $_ := set $config "cache" (dict "image" $cache) }}
{{- end }}
{{- toYaml (merge (dict "apiVersion" "config.trainer.kubeflow.org/v1alpha1" "kind" "Configuration") $config) }}
{{- end }}

{{- /* The older kinds of jobs that the hub looks after, with commas: older TrainJobs are seen as what they become. */ -}}
{{- define "trainplane.hubKinds" -}}
{{- $kinds := list -}}
{{- range (.Values.manager.config.legacy).kinds -}}
{{- if not (hasPrefix "v2alpha1" .) -}}{{- $kinds = append $kinds . -}}{{- end -}}
{{- end -}}
{{- join "," $kinds -}}
{{- end -}}
