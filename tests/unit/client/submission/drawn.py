"""Secrets of every kind that the table knows. They are drawn: none ever was one, and none stands in a file."""

from __future__ import annotations

import base64
import json
import random
import string

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def drawn(count: int, alphabet: str = _LETTERS, seed: int = 1) -> str:
    """Return letters by chance, with a small one, a capital and a digit among them if the alphabet has such."""
    chance = random.Random(seed * 1000 + count)  # noqa: S311 it is the same in every run
    text = "".join(chance.choice(alphabet) for _ in range(count - 3))
    return text + "".join(letter for letter in ("a", "D", "7") if letter in alphabet).ljust(3, alphabet[-1])[:3]


def pem(kind: str = "RSA ", lines: int = 4) -> str:
    """Return what looks like a private key."""
    body = "\n".join(drawn(64, _LETTERS + "+/", seed) for seed in range(lines))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----\n"


def secrets() -> dict[str, str]:
    """Return texts that hold a secret, by what it is."""
    jwt = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "RS256", "kid": drawn(9)}, {"sub": "system:serviceaccount:team:default"})
    )
    aws = drawn(40, _LETTERS + "/+")
    openssh = "openssh-key-v1\0" + drawn(60)
    return {
        "hugging face": f"hf_{drawn(34)}",
        "hugging face organisation": f"api_org_{drawn(34)}",
        "hugging face header": f"Bearer hf_{drawn(34)}",
        "github": f"ghp_{drawn(36)}",
        "github oauth": f"gho_{drawn(36)}",
        "github app": f"ghs_{drawn(36)}",
        "github fine-grained": f"github_pat_{drawn(22)}_{drawn(59)}",
        "gitlab": f"glpat-{drawn(20)}",
        "openai": f"sk-{drawn(20)}T3BlbkFJ{drawn(20)}",
        "openai project": f"sk-proj-{drawn(60)}_{drawn(40)}-{drawn(10)}",
        "anthropic": f"sk-ant-api03-{drawn(93)}-{drawn(6)}AA",
        "google key": f"AIza{drawn(35)}",
        "google token": f"ya29.a0{drawn(80)}",
        "slack": f"xoxb-{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24)}",
        "slack webhook": f"https://hooks.slack.com/services/T{drawn(10).upper()}/B{drawn(10).upper()}/{drawn(24)}",
        "discord webhook": f"https://discord.com/api/webhooks/{drawn(18, string.digits)}/{drawn(68)}",
        "npm": f"npm_{drawn(36)}",
        "pypi": f"pypi-AgEIcHlwaS5vcmc{drawn(120)}",
        "docker hub": f"dckr_pat_{drawn(27)}",
        "weights & biases": f"WANDB_API_KEY={drawn(40, _HEX)}",
        "weights & biases in code": f'wandb.login(key="{drawn(40, _HEX)}")',
        "weights & biases, new": f"wandb_v1_{drawn(70)}",
        "databricks": f"dapi{drawn(32, _HEX)}",
        "nvidia": f"nvapi-{drawn(64)}",
        "replicate": f"r8_{drawn(37)}",
        "groq": f"gsk_{drawn(52)}",
        "xai": f"xai-{drawn(80)}",
        "vault": f"hvs.{drawn(95)}",
        "kaggle": json.dumps({"username": "me", "key": drawn(32, _HEX)}),
        "jwt": f"{jwt}.{drawn(86)}",
        "aws secret": f"aws_secret_access_key = {aws}",
        "aws pair": f'boto3.client("s3", "AKIA{drawn(16, string.ascii_uppercase)}", "{aws}")',
        "azure storage": f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={drawn(86, _LETTERS + '+/')}==;",
        "azure bus": f"Endpoint=sb://a/;SharedAccessKeyName=R;SharedAccessKey={drawn(43, _LETTERS + '+/')}=",
        "azure signature": f"https://a.blob.core.windows.net/c?sv=2024&sig={drawn(43)}%3D",
        "private key": pem(),
        "private key, pkcs8": pem(""),
        "private key, encrypted": pem("ENCRYPTED "),
        "private key, openssh": pem("OPENSSH "),
        "private key, ec, on one line": json.dumps(pem("EC ")),
        "openssh without its header": base64.b64encode(openssh.encode()).decode(),
        "putty": "\n".join(["PuTTY-User-Key-File-3: ssh-ed25519", "Encryption: none", drawn(64)]),
        "google service account": json.dumps({"type": "service_account", "private_key": pem("")}, indent=2),
        "kubeconfig key": f"    client-key-data: {base64.b64encode(pem().encode()).decode()}\n",
        "kubeconfig token": f"users:\n- name: a\n  user:\n    token: {drawn(24)}\n",
        "netrc": f"machine api.wandb.ai\n  login user\n  password {drawn(40, _HEX)}\n",
        "npmrc": f"//registry.npmjs.org/:_authToken={drawn(36)}\n",
        "docker config": json.dumps({"auths": {"r": {"auth": base64.b64encode(b"me:" + drawn(9).encode()).decode()}}}),
        "git credentials": f"https://me:{drawn(12)}@github.com",
        "token as user": f"git+https://{drawn(40, _HEX)}@github.com/acme/x",
        "database": f"postgresql://me:{drawn(12)}@db:5432/x",
        "basic header": json.dumps(
            {"Authorization": f"Basic {base64.b64encode(b'me:' + drawn(20).encode()).decode()}"}
        ),
        "password by name": f'DB_PASSWORD = "{drawn(16)}"',
        "key by name": f"COMET_API_KEY: {drawn(25)}",
        "base64 of a key": base64.b64encode(pem("OPENSSH ").encode()).decode(),
        "base64 of a token": base64.b64encode(f'{{"token": "hf_{drawn(34)}"}}'.encode()).decode(),
    }
