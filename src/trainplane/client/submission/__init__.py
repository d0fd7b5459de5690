"""What a user wrote, as a TrainJob document. Nothing here talks to anybody."""

from trainplane.client.submission.job import check_document, complete, compose
from trainplane.client.submission.naming import draw_name

__all__ = ["check_document", "complete", "compose", "draw_name"]
