"""The older kinds of jobs: what follows from one look at a job (`decide`), and how one moves on to TrainJobs. Pure.

Their pods are made directly, without JobSet: users rely on pods and services named JOB-TYPE-INDEX, on their labels, on
a pod's successor that has its name, and on counts by replica type. `decision` is what the operator and these rooms hand
each other; `job` is how a job is read; `frameworks` is what its kinds differ in.
"""
