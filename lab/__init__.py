"""The lab: a real Kubernetes, with JobSet, Kueue and real pods, on one Linux machine, from packages alone.

Why: everything Trainplane claims is proved on real engines, never on a mock of them. `docs/lab.md` is the way in;
`python -m lab` is the command line; `lab.pytest_plugin` brings the fixtures.

Invariant: what the lab starts lives in network namespaces, cgroups and folders whose names it owns, so `down` can
find all of it again even when the process that started it is gone.
"""
