"""Logs of every pod of every TrainJob, followed while it runs and kept on a volume."""
