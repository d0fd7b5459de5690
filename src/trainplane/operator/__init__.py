"""The story of a reconcile: get, render, apply, status. Empty today.

Here will live the composition root, the TrainJob story, snapshots, status, deadline, settings and metrics.
"""
