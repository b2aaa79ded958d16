"""Lines of reports, and a slow twin of what reads them: line by line, from the definition."""

from __future__ import annotations

import base64
import re
from collections import Counter

CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def line_of(content: bytes, key: bytes = b"") -> bytes:
    """One line: a report by itself, perhaps with a key."""
    return base64.b64encode(content) + (b" " + key if key else b"") + b"\n"


def text_of(content: bytes) -> bytes | None:
    """The bytes that this base64 is the one text of; None if there are none."""
    if len(content) % 4 or not content:
        return None
    body = content.rstrip(b"=")
    if len(content) - len(body) > 2 or set(body) - set(CHARACTERS + b"+/"):
        return None
    number = 0
    for character in body:
        number = number << 6 | (CHARACTERS + b"+/").index(character)
    bits = 6 * len(body)
    if number & (1 << bits % 8) - 1 or bits % 8 == 6:
        return None
    return (number >> bits % 8).to_bytes(bits // 8, "big")


def slow_lines(channel, content: bytes) -> tuple[list[bytes], Counter[str]]:
    """The payloads of a file of lines that count, and what is wrong with the others."""
    kept, wrong, keys = list[bytes](), Counter[str](), set[bytes]()
    *lines, last = content.split(b"\n")
    for line in lines:
        if line.startswith(b"#"):
            continue
        text, *key = line.split(b" ", 1)
        raw = text_of(text)
        bad = key and not re.fullmatch(rb"[-A-Za-z0-9._]{1,64}", key[0])
        if raw is None or bad or len(raw) < 8:
            wrong["malformed"] += 1
        elif raw[:8] != channel.wire:
            wrong["foreign"] += 1
        elif len(raw) != 8 + channel.report_dtype.itemsize:
            short = len(raw) < 8 + channel.report_dtype.itemsize
            wrong["truncated" if short else "malformed"] += 1
        elif key and key[0] in keys:
            wrong["repeated"] += 1
        else:
            keys.update(key)
            kept.append(raw[8:])
    if last:
        wrong["truncated"] += 1
    return kept, wrong
