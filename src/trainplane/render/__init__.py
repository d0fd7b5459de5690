"""The pure heart, empty today: TrainJob and runtime become a Plan, and a Plan becomes objects.

Here will live plan, resolve, merge, the pipeline with its fixed plugin order, and `plugins/`, one file each.
No I/O, no clock, no randomness.
"""
