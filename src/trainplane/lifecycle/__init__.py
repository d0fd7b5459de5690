"""The life of a TrainJob, from what it asks for to its end: rules that operator, hub, client and admission share. Pure.

    conditions   which end it has, if any
    status       what is true of it now, from its spec and its JobSet's status
    deadline     how much longer it may run
    events       what people are told as it goes along, and in which words

Imports `api` alone: no network, no clock of its own.
"""
