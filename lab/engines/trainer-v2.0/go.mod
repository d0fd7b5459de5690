module trainplane.dev/lab/engines/trainer-v2.0

go 1.26.0

require github.com/kubeflow/trainer/v2 v2.0.0
