"""References to secrets that are kept elsewhere, and ciphertexts: both are made to be shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shared.experiences.secret_scanner.rules import Candidate

_STORE: Final = re.compile(
    r"\barn:aws[\w-]*:|@Microsoft\.KeyVault\(|\.vault\.[a-z]+\.[a-z]+/|\bprojects/[\w.-]+/secrets/|\{\{ ?resolve:|\bref\+\w+:",
    re.IGNORECASE,
)
"""The parts of a word that name a store of secrets, wherever the word goes on."""
_SCHEME: Final = re.compile(
    r"(?:vault|bao|op|ssm|secretsmanager|aws-?sm|gcp-?sm|sm|akv|azurekeyvault|keyvault|doppler|infisical|kms|secretref|secretkeyref|env|file):",
    re.IGNORECASE,
)
_CIPHERTEXT: Final = re.compile(
    r"ENC[\[(]|\{cipher\}|encrypted:|\$ANSIBLE_VAULT|AQ[IE]CA[A-Za-z0-9+/]{30}", re.IGNORECASE
)
_SEALED: Final = re.compile(r"Ag[A-D][A-Za-z0-9+/]{200}")
"""A value of a SealedSecret: its first bytes are the length of the wrapped key, 512."""


def is_reference(candidate: Candidate) -> bool:
    """Return True if the value is a reference to a secret, or the ciphertext of one."""
    word = f"{candidate.before(200)}{candidate.lead}".rpartition(" ")[2] + candidate.value
    sealed = _SEALED.match(candidate.value + candidate.after(200))
    scheme = _SCHEME.match(candidate.value) or ("=" not in word and _SCHEME.match(word))
    return bool(_STORE.search(word) or scheme or _CIPHERTEXT.match(candidate.value) or sealed)
