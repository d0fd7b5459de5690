"""From an older job to a TrainJob: `trainplane migrate`. Pure; the command line reads files and clusters.

convert.migrate      an older job ─► Migration: a TrainJob, its runtime where no shipped one fits, a note per field
outcome              what became of each field, and why a job is refused
draft                the TrainJob and its runtime in the making
roles                replica specs, judged: how many pods of which template, and how they start again
run_policy, torch, tensorflow, ranks, mpi, older    what each part of a job becomes
pods, comparison     the pods of both, side by side: the proof
inventory            what a cluster has, and in which order to move it
"""
