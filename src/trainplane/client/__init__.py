"""The SDK, empty today: TrainerClient, its types and options, packaging of functions, and `backends/`."""
