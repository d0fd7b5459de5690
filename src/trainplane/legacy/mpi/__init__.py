"""MPIJob: a launcher that starts processes on workers over SSH, run as mpi-operator v0.8.2 runs it.

Workers are pods, the launcher is a Job, keys are in a Secret, the list of hosts in a ConfigMap; one headless Service
gives all of them names. What is written as kubeflow.org/v1 is converted to v2beta1, which is stored.
"""
