"""Every folder has a README of at most twenty lines, the documents that the project promises exist, and the files that they name are there."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
tops = ("core", "plugins", "tests", "sdk", "cmake", "scripts", "docs")
problems = []


def folders(top):
    yield top
    # A folder in the fuzz corpus holds inputs and nothing else: each file of it is replayed.
    if top == root / "tests/fuzz/corpus":
        return
    for below in sorted(p for p in top.iterdir() if p.is_dir() and p.name != "__pycache__"):
        yield from folders(below)


for folder in (f for top in tops for f in folders(root / top)):
    name, readme = folder.relative_to(root), folder / "README.md"
    if not any(f.is_file() for f in folder.iterdir()):
        continue
    if not readme.is_file():
        problems.append(f"{name} has no README.md")
    elif len(readme.read_text().splitlines()) > 20 and name.parts[:2] != ("docs", "adr"):
        problems.append(f"{name}/README.md is longer than twenty lines")
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

# Each step of the life of one run names files; a name without a folder lies where the one before it does.
life = (root / "docs/architecture.md").read_text().split("## Life of one run")[1].split("\n## ")[0]
steps = [line.split("|")[-2] for line in life.splitlines() if re.match(r"\| \d+ \|", line)]
if len(steps) < 10:
    problems.append(f"docs/architecture.md: the life of one run has {len(steps)} steps")
for number, cell in enumerate(steps, 1):
    folder, named = "", re.findall(r"`([^`]+)`", cell)
    for name in named:
        folder = name.rsplit("/", 1)[0] if "/" in name else folder
        path = f"{folder}/{name.rsplit('/', 1)[-1]}"
        if not (root / path).is_file():
            problems.append(f"docs/architecture.md: step {number} names {path}, which is not there")
    if not named:
        problems.append(f"docs/architecture.md: step {number} names no file")

for document in [*root.glob("*.md"), *(m for top in tops for m in (root / top).rglob("*.md"))]:
    text, where = document.read_text(), document.relative_to(root)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if ":" not in link and not (document.parent / link).exists():
            problems.append(f"{where} links to {link}, which is not there")
    for path in re.findall(r"`((?:core|plugins|tests|docs|scripts|sdk|cmake)/[\w./-]+\.(?:cpp|hpp|h|md|py|sh|cmake|json|def|txt))`", text):
        if not (root / path).exists():
            problems.append(f"{where} names {path}, which is not there")
print("\n".join(problems) or "the tree is as promised")
sys.exit(1 if problems else 0)
