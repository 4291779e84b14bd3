"""Every folder of the source has a README of at most twenty lines, and the documents that the project promises exist."""
import pathlib
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
problems = []
rooms = [p for top in ("core", "plugins", "tests") for p in (root / top).iterdir() if p.is_dir()]
for room in rooms + [root / "sdk", root / "cmake", root / "scripts", root / "docs"]:
    readme = room / "README.md"
    if not readme.is_file():
        problems.append(f"{room.relative_to(root)} has no README.md")
    elif len(readme.read_text().splitlines()) > 20:
        problems.append(f"{readme.relative_to(root)} is longer than twenty lines")
for name in ("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/architecture.md", "docs/glossary.md", "docs/MANUAL.md",
             "docs/limits.md", "docs/errors.md", "docs/spawn-plan.md", "docs/policy.md", "docs/evidence.md", ".clang-format"):
    if not (root / name).is_file():
        problems.append(f"{name} is missing")
for adr in (root / "docs/adr").glob("*.md"):
    if not adr.name[:4].isdigit() and adr.name != "README.md":
        problems.append(f"{adr.name}: a decision record is NNNN-title.md")
numbers = [a.name[:4] for a in (root / "docs/adr").glob("[0-9]*.md")]
for n in sorted({n for n in numbers if numbers.count(n) > 1}):
    problems.append(f"docs/adr: number {n} is used twice")
print("\n".join(problems) or "the tree is as promised")
sys.exit(1 if problems else 0)
