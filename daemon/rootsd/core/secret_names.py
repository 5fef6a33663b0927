"""Recognize files with secrets by their names. Pure, and cheap to load.

`is_secret_name` judges the name of a file in a project: a person is told about it. `secret_part`
judges a path that a person's settings name, before it is shown behind the wall: a false alarm
costs one option there, so it is stricter.
"""

from __future__ import annotations

_ENDINGS = frozenset(b"pem key p12 pfx jks keystore kdbx ovpn tfvars".split())
_NAMES = frozenset(
    b".env .netrc .pgpass .npmrc .pypirc .htpasswd id_rsa id_dsa id_ecdsa id_ed25519 credentials"
    b" credentials.json credentials.toml credentials.yaml secret.json secret.yaml secret.yml"
    b" secret.toml secrets.json secrets.yaml secrets.yml secrets.toml terraform.tfstate".split()
)
# What openssl, curl, and certbot call certificates, which everybody may read.
_CERTIFICATES = frozenset(
    b"ca.pem cacert.pem ca-cert.pem ca-bundle.pem ca-chain.pem cert.pem chain.pem fullchain.pem"
    b" public.pem".split()
)
_EXAMPLES = frozenset(b"example sample template dist default defaults".split())
_IN_A_NAME = b"""secret token credential passw passphrase keyring wallet cookie private_key
    _history""".split()
# The folders and files, with or without a dot before the name, in which programs keep logins.
_STORES = frozenset(
    b"ssh gnupg gpg pgp aws azure gcloud kube docker vault password-store mozilla thunderbird"
    b" chromium google-chrome bravesoftware microsoft-edge 1password op bitwarden keepass"
    b" keepassxc gh hub glab rclone s3cfg boto netrc pgpass my.cnf mylogin.cnf pypirc npmrc age"
    b" sops terraform.d auth.json auth.toml auth.ini hosts.yml"
    b" vault-token envrc authinfo msmtprc fetchmailrc git-credentials"
    b" history history.txt history.sqlite3".split()
)


def is_secret_name(name: bytes) -> bool:
    """Return whether a file with this name usually holds a secret, such as `.env` and `a.pem`."""
    low = name.lower()
    stem, _, ending = low.rpartition(b".")
    if low in _NAMES or (stem and ending in _ENDINGS):
        return low not in _CERTIFICATES
    if low.startswith(b".env."):
        return low[len(b".env.") :] not in _EXAMPLES and b" " not in low
    return low.startswith(b"service-account") and ending == b"json"


def secret_part(path: bytes) -> bytes | None:
    """Return the part of a path that sounds like secrets, such as `.ssh`, or None."""
    for part in path.split(b"/"):
        low = part.lower()
        if is_secret_name(part) or low.removeprefix(b".") in _STORES:
            return part
        if any(word in low for word in _IN_A_NAME) or low.startswith(b"id_"):
            return part
    return None
