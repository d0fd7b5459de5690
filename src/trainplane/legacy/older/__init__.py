"""TrainJobs and runtimes of the older shape (`kubeflow.org/v2alpha1`), lowered to today's objects. Pure.

`lowering` says what an object becomes, `generated` makes the runtime of a TrainJob that names none, `standing` maps
back how the TrainJob is doing.
"""
