"""The kubeflow.org/v1 kinds and the v2alpha1 shape, lowered to the same Plan. Empty today."""
