"""What sends the output of a training from inside its pod: `python -m trainplane.initializers output`.

`folder` says what there is to send, `ledger` what was sent already, `sender` sends it and its `manifest` last,
`training` knows when there is no more to come, `program` follows it from beginning to end, and `supervisor` starts that
again if it is killed.
"""
