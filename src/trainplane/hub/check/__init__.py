"""Does the fleet fit together? Facts of hub and workers, and what they mean for a job that is sent there."""
