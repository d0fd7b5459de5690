"""The pure heart: a TrainJob and its runtime become a plan, and a plan becomes objects.

No I/O, no clock, no randomness. The operator, admission, the command line, the SDK's local backends and the legacy
kinds all call the same pipeline: `docs/architecture/render.md`.
"""
