"""Jobs of the older kinds, made to run: the shell around `legacy`, which decides.

    mirrors ─► jobs ─► legacy.decide ─► making ─► pods, services, …
                 │
                 └─► statuses, Events, metrics

    webhooks     their admission, and the conversion of MPIJobs
    assembly     what of all this runs: the kinds that the Configuration names, and nothing without any

A job runs on pods directly, under the names, labels and statuses that training-operator and mpi-operator gave them.
What to do about one is decided by a pure function of what is seen; here is only reading and writing.
"""
