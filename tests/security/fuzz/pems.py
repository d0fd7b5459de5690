"""A certificate and its key, made for inputs and for nothing else: the same in every run, so that inputs are."""

from __future__ import annotations

from typing import Final

CERTIFICATE: Final = """\
-----BEGIN CERTIFICATE-----
MIIBIDCByKADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBGZ1enowIBcN
MjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBGZ1enow
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQclrlBAzLsLfR+EGQ0dRrSmrv8eS/A
JvNaWtSw8H+9lXcl7fsm8fAsPTd0ot5v1krhwqViBoNtQ8CTiJGi1RYFoxMwETAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIGBU9yMsLGCr408EL9dW
i3unGMxkegQxqSBZbYamTb77AiAwnKo/3BBLOWFt43e9jVa3LkYXnwlqwVx5Ug8V
cAv66w==
-----END CERTIFICATE-----
"""

KEY: Final = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglrv3qKmz6l9Nxbdh
xvWL2Oga/iPKve5CqUdcR7J8DAuhRANCAAQclrlBAzLsLfR+EGQ0dRrSmrv8eS/A
JvNaWtSw8H+9lXcl7fsm8fAsPTd0ot5v1krhwqViBoNtQ8CTiJGi1RYF
-----END PRIVATE KEY-----
"""
