"""MultiKueue seen from the management cluster. Empty today.

Here will live where a job runs, its pods, events and logs, and the checks of a fleet.
"""
