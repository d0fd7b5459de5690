"""A small controller runtime: it knows Kubernetes, not training.

Imports nothing of ours. `docs/architecture/kube.md` is the page to read before touching it.
"""
