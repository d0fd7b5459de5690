"""What looks like a credential is taken out; what does not stays."""

from __future__ import annotations

import time

import pytest

from trainplane.explain.redaction import HIDDEN, redact

DRAWN = "Zk3vQ9xT7bLw2RfY8mNc4HsJ1gPd6UaE0oIiKtVq"


@pytest.mark.parametrize(
    "text",
    [
        f"https://joe:{DRAWN}@index.example/simple",
        f"https://{DRAWN}@github.example/x.git",
        f"Authorization: Bearer {DRAWN}",
        f"'Authorization': 'Basic {DRAWN}'",
        f"hf_{DRAWN}",
        f"token hf_{DRAWN} is wrong",
        f"ghp_{DRAWN}",
        f"sk-{DRAWN}",
        f"AKIA{DRAWN[:16].upper()}",
        f"aws_secret_access_key = {DRAWN}",
        f"WANDB_API_KEY={DRAWN}",
        f'{{"password": "{DRAWN}"}}',
        f"--hf-token {DRAWN}",
        f"--api-key={DRAWN}",
        f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.{DRAWN}",
        f"https://bucket.example/x?X-Amz-Signature={DRAWN}&y=1",
        f"https://blob.example/x?sv=1&sig={DRAWN}",
        f"MY_SECRET: {DRAWN}",
        f"passwd={DRAWN}, user=joe",
        f"the key is {DRAWN}",
    ],
)
def test_a_credential_is_hidden(text: str) -> None:
    shown = redact(text)
    assert HIDDEN in shown
    for start in range(len(DRAWN) - 12):
        assert DRAWN[start : start + 12] not in shown


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'tokens'",
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)",
        "epoch 3 loss 0.25 tokens/s 12034.5",
        "FileNotFoundError: [Errno 2] No such file or directory: '/workspace/dataset/train.json'",
        '[rank1]:   File "/usr/lib/python3.13/site-packages/torch/nn/modules/module.py", line 1773, in _call_impl',
        "git checkout 7c3e0c3a1f6c0c5d8f8f7f2a9a6b5c4d3e2f1a0b",
        "model.layers.31.self_attn.q_proj.weight",
    ],
)  # fmt: skip
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("piece", ["password=", "://a", "A1b", "!", "eyJ.", "-----BEGIN ", "token ", "x-", "a_"])
def test_time_is_linear_in_the_text(piece: str) -> None:
    def cost(letters: int) -> float:
        text = (piece * letters)[:letters]
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    assert min(cost(4096) for _ in range(3)) < 0.1
