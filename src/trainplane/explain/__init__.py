"""Why a TrainJob failed, waits or stands still: one cause, its evidence, what to do. Pure.

    trouble      what a class of trouble is
    catalogue    every class of trouble: what it means, what to do, whether it heals
    redaction    what looks like a credential is taken out
    cleaning     what others wrote, made fit to be kept and shown
    signatures   what libraries print when something of a known class happens
    logs         which lines of a log say what was wrong
    pods         one pod: its place in the TrainJob, and how it is doing
    places       what people call each pod
    standing     what a TrainJob's document says of itself in a word
    faults       how one pod ended badly, and which of many faults was the first
    facts        all that is known of one TrainJob
    explanation  what is handed back; phrasing puts it together
    failure      why it failed
    waiting      why its pods do not get on; creation, why they are not made; holding, why it is held
    timeline     when it reached each stage of its life
    pace         whether it gets on: slow to start, standing still, one node behind
    explain      from facts to an explanation
    bundle       facts as a file without secrets

Imports `api` and `lifecycle` alone: no network, no clock of its own.
"""
