"""Holds the include arrows of docs/architecture.md: each room may include itself and the rooms listed for it."""
import pathlib
import re
import sys

BASE = {"base"}
OS = BASE | {"os"}
MIDDLE = {"policy", "evidence", "spawn", "nft", "plugin", "git"}
TOP = {"session", "gate", "broker", "mcp"}
ALLOWED = {
    "base": BASE,
    "os": OS,
    "policy": OS | {"policy"},
    "evidence": OS | {"evidence"},
    "spawn": OS | {"spawn"},
    "nft": OS | {"nft"},
    "git": OS | {"git"},
    # plugin may read policy documents and start the spawner's client side; see docs/adr/0004.
    "plugin": OS | {"plugin", "policy", "spawn"},
    "session": OS | MIDDLE | {"session"},
    "gate": OS | {"gate", "git", "evidence"},
    "broker": OS | MIDDLE | {"broker"},
    "host": OS | MIDDLE | {"session", "gate", "broker", "host"},
    "mcp": BASE | {"mcp"},
    "cli": OS | MIDDLE | TOP | {"cli"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def violations(files):
    """files: iterable of (path relative to the root, text). Yields messages."""
    for path, text in files:
        parts = path.split("/")
        for target in INCLUDE.findall(text):
            t = target.split("/")
            if ".." in t:
                yield f"{path}: {target} goes around the arrows: write it from the root"
            if parts[0] in ("core", "plugins", "sdk") and t[0] == "tests":
                yield f"{path}: only tests include {target}"
            if parts[0] == "core" and t[0] == "core":
                room = parts[1]
                if t[1] not in ALLOWED.get(room, set()):
                    yield f"{path}: core/{room} may not include {target}"
            if parts[0] == "core" and t[0] in ("plugins", "web"):
                yield f"{path}: core may not include {target}"
            if parts[0] == "plugins" and target.startswith(("core/", "web/")):
                yield f"{path}: a plugin sees only the SDK, not {target}"
            if parts[0] == "plugins" and t[0] == "plugins" and t[1] not in (parts[1], "confined"):
                yield f"{path}: {parts[1]} sees itself and confined, not {target}"
            if parts[0] == "sdk" and t[0] in ("core", "plugins", "web"):
                yield f"{path}: the SDK stands alone, not {target}"


def main():
    if sys.argv[1] == "--self-test":
        bad = [("core/os/a.cpp", '#include "core/policy/b.hpp"\n'), ("plugins/tier-x/a.cpp", '#include "core/base/b.hpp"\n'),
               ("core/cli/a.cpp", '#include "plugins/tier-x/b.hpp"\n'), ("sdk/include/h5i/a.hpp", '#include "core/base/b.hpp"\n'),
               ("core/session/a.cpp", '#include "core/host/b.hpp"\n'), ("core/os/a.cpp", '#include "../policy/b.hpp"\n'),
               ("plugins/tier-x/a.cpp", '#include "../../core/base/b.hpp"\n'), ("plugins/tier-x/a.cpp", '#include "plugins/tier-y/b.hpp"\n'),
               ("plugins/confined/a.cpp", '#include "plugins/tier-y/b.hpp"\n'), ("core/cli/a.cpp", '#include "tests/support/b.hpp"\n')]
        good = [("core/cli/a.cpp", '#include "core/session/b.hpp"\n#include <vector>\n'), ("plugins/tier-x/a.cpp", '#include "h5i/plugin.hpp"\n#include "plugins/confined/b.hpp"\n#include "b.hpp"\n')]
        assert len(list(violations(bad))) == len(bad), list(violations(bad))
        assert not list(violations(good)), list(violations(good))
        return 0
    root = pathlib.Path(sys.argv[1])
    files = []
    for top in ("core", "plugins", "sdk", "web"):
        for p in sorted((root / top).rglob("*")):
            if p.suffix in (".c", ".cpp", ".h", ".hpp") and p.is_file():
                files.append((p.relative_to(root).as_posix(), p.read_text(errors="replace")))
    assert len(files) > 20, "the tree was not found"
    found = list(violations(files))
    print("\n".join(found) or f"{len(files)} files keep the arrows")
    return 1 if found else 0


sys.exit(main())
