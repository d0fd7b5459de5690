"""What a user wrote, as a TrainJob document. Nothing here talks to anybody."""

from trainplane.client.submission.job import complete, compose
from trainplane.client.submission.naming import draw_name

__all__ = ["complete", "compose", "draw_name"]
