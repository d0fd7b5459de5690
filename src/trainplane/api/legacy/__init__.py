"""The older kinds: jobs of training-operator v1 and mpi-operator, and TrainJobs as documents of v2alpha1 have them.

`kinds` is the one table of what they are called and how they differ; `job` has the parts that they share, and each kind
has a file of its own. The CRDs are emitted from these types, and are structurally those of the operators before us.
"""
