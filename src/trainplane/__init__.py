"""Trainplane: a Python control plane for distributed training on Kubernetes.

The rooms stand in the order in which a TrainJob passes through them; ARCHITECTURE.md draws it.
"""
