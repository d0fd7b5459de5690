"""The operator: makes each TrainJob run, and says truthfully how it is doing.

`main` is the one composition root and lists everything that runs; `trainjob` is the story of a reconcile. Beside them,
one page each: what the operator sees (`stores`), keeps (`snapshot`), decides (`status`, `deadline`, `adoption`),
writes (`apply`), says (`events`, `metrics`) and answers (`webhooks`). docs/architecture/operator.md has the map.
"""
