"""What a user wrote, as a TrainJob document. Nothing here talks to anybody."""

from trainplane.client.submission.job import compose

__all__ = ["compose"]
