#!/usr/bin/env python3
"""Verifies a log of h5i from docs/evidence.md alone: python3's standard library, and openssl for the signature.

usage: verify_independent.py LOG [--key HOST.pub] [--seal FILE]
Exit 0: chain intact and its end proven. 1: not, with the first bad record named. 3: chain intact, but nothing here can
check the signature (no openssl).
"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

MAX_LINE = 1 << 20
MEMBERS = {"v", "log", "seq", "prev", "time", "session", "lane", "observer", "kind", "body"}
LANES = {"host-observed", "engine-claimed", "box-claimed"}


class Bad(Exception):
    def __init__(self, index, why):
        super().__init__(f"record {index}: {why}")
        self.index = index


def no_duplicates(pairs):
    out = {}
    for key, value in pairs:
        if key in out:
            raise ValueError("duplicate key")
        out[key] = value
    return out


def digest(data):
    return hashlib.sha256(data).hexdigest()


def records(path):
    """Yields (index, the line's bytes, the record)."""
    with open(path, "rb") as f:
        data = f.read()
    lines = data.split(b"\n")
    torn = lines.pop()
    for i, line in enumerate(lines):
        if len(line) > MAX_LINE:
            raise Bad(i, "too long")
        try:
            record = json.loads(line.decode("utf-8", "strict"), object_pairs_hook=no_duplicates)
        except (ValueError, RecursionError) as e:
            raise Bad(i, f"not strict JSON: {e}") from None
        if not isinstance(record, dict) or not MEMBERS <= set(record) or set(record) - MEMBERS - {"boundary"}:
            raise Bad(i, "not the members of a record")
        if record["v"] != 1 or record["lane"] not in LANES or not isinstance(record["body"], dict):
            raise Bad(i, "not a record of version 1")
        yield i, line, record
    if torn:
        raise Bad(len(lines), "cut in the middle")


def chain(path, log_id, count, head):
    """The number of records. With count and head (of a seal): that the log holds that point."""
    prev, n, at_seal = None, 0, None
    for i, line, record in records(path):
        log_id = log_id or record["log"]
        if record["log"] != log_id:
            raise Bad(i, "belongs to another log")
        if record["seq"] != i:
            raise Bad(i, f"is numbered {record['seq']}")
        if prev is None:
            prev = digest(log_id.encode())
        if record["prev"] != prev:
            raise Bad(i, "does not carry the digest of the record before it: that one or this one was changed")
        prev, n = digest(line), i + 1
        if n == count:
            at_seal = prev
    if count is not None:
        if n < count:
            raise Bad(n, f"is missing: {count} records were signed")
        if at_seal != head:
            raise Bad(count - 1, "is not what was signed")
    return n


def public_key_id(pem):
    body = "".join(line for line in pem.splitlines() if not line.startswith("-"))
    der = base64.b64decode(body)
    prefix = bytes.fromhex("302a300506032b6570032100")
    if len(der) != 44 or der[:12] != prefix:
        raise SystemExit("not an Ed25519 public key")
    return digest(der[12:])


def check_signature(seal, key_path):
    with open(key_path, encoding="ascii") as f:
        if public_key_id(f.read()) != seal["key"]:
            raise SystemExit("signed by another key: " + seal["key"])
    signed = {k: v for k, v in seal.items() if k != "signature"}
    # Strings of ASCII and integers only, so this is RFC 8785.
    message = json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()
    with tempfile.TemporaryDirectory() as d:
        for name, data in (("m", message), ("s", base64.b64decode(seal["signature"], validate=True))):
            with open(os.path.join(d, name), "wb") as f:
                f.write(data)
        done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key_path, "-rawin", "-in", os.path.join(d, "m"),
                               "-sigfile", os.path.join(d, "s")], capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit("the signature is wrong")


def main(argv):
    options = dict(zip(argv[1::2], argv[2::2]))
    log, key = argv[0], options.get("--key")
    seal_path = options.get("--seal", log + ".seal")
    try:
        if not os.path.exists(seal_path) or key is None:
            print(f"chain intact, {chain(log, None, None, None)} records, end not proven")
            return 1
        with open(seal_path, "rb") as f:
            seal = json.loads(f.read(4096), object_pairs_hook=no_duplicates)
        if seal["schema"] != "h5i.seal/1" or set(seal) != {"schema", "log", "count", "head", "bytes", "time", "key", "signature"}:
            raise SystemExit("not a seal")
        have_openssl = shutil.which("openssl") is not None
        if have_openssl:
            check_signature(seal, key)
        n = chain(log, seal["log"], seal["count"], seal["head"])
        if n > seal["count"]:
            print(f"chain intact, {seal['count']} of {n} records proven")
            return 1
        if not have_openssl:
            print(f"chain intact, {n} records; no openssl to check the signature with")
            return 3
        print(f"verified, {n} records, end proven")
        return 0
    except Bad as e:
        print(e)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
