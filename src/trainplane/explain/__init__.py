"""Why a TrainJob failed, waits or stands still: one cause, its evidence, what to do. Pure.

    catalogue    every class of trouble: what it means, what to do, whether it heals
    redaction    what looks like a credential is taken out
    cleaning     what others wrote, made fit to be kept and shown
    signatures   what libraries print when something of a known class happens
    logs         which lines of a log say what was wrong
    pods         one pod: its place in the TrainJob, and how it is doing
    faults       how one pod ended badly, and which of many faults was the first

Imports `api` and `lifecycle` alone: no network, no clock of its own.
"""
