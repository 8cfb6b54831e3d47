"""Golden draws: whether a change of the code changed a single bit of what is drawn.

    python -m tests.golden record FILE [PATTERN]     run the cases, and write what they gave
    python -m tests.golden compare OLD NEW           what differs between two such files
    make golden BASE=<commit>                        both, for a commit and the working tree

Of each case the file has a SHA-256 of the values of every array, the log evidence, and the
warnings, notes and facts of the summary. The bits of a draw depend on the machine and on the
versions of what is installed, so that two files are compared only if one machine has made them on
one day.
"""

import hashlib
import json
import os
import re
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# As the tests do: most of the time goes into compiling, and the same bits come of both sides.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)

import numpy as np

# Facts of a run that differ each time, and words that name what has been renamed since.
TIMES = ("seconds",)


def digest(values: Any) -> str:
    """The content of an array or a text, in a few letters."""
    if isinstance(values, str):
        return hashlib.sha256(values.encode()).hexdigest()[:16]
    array = np.ascontiguousarray(values)
    if array.dtype.kind in "OUT":
        return digest(str(array.tolist()))
    form = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.sha256(form + array.tobytes()).hexdigest()[:16]


def told(tree: Any) -> dict[str, Any]:
    """Every array of a tree by its digest, and what the summary says of it."""
    import temperance as tp

    found: dict[str, Any] = {}
    for group in sorted(tree.children):
        for name, array in sorted(tree[group].dataset.variables.items()):
            found[f"{group}/{name}"] = digest(array.values)
    if "evidence" in tree.children:
        found["log evidence"] = [float(value).hex() for value in tp.log_evidence(tree)]
    said = tp.summary(tree)
    found["warnings"] = said.warnings
    found["notes"] = getattr(said, "notes", [])  # older sources have none
    found["table"] = digest(said.table.to_csv())
    facts = {name: str(value) for name, value in said.facts.items() if name not in TIMES}
    return found | {f"fact {name}": value for name, value in facts.items()}


def record(path: Path, pattern: str) -> None:
    """Run the cases whose names match, and keep what they gave."""
    from tests.golden.cases import CASES

    found: dict[str, Any] = {}
    for name, run in CASES.items():
        if not re.search(pattern, name):
            continue
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = run()
                parts = told(given) if hasattr(given, "children") else {
                    part: digest(value if isinstance(value, str) else np.asarray(value))
                    for part, value in given.items()
                }  # fmt: skip
        except Exception as error:  # noqa: BLE001  a case that fails is a difference like any other
            traceback.print_exc()
            parts = {"error": f"{type(error).__name__}: {error}"}
        found[name] = parts
        print(f"{time.perf_counter() - began:6.1f} s  {name}", flush=True)
        path.write_text(json.dumps(found, indent=1))


def compare(old: Path, new: Path) -> list[str]:
    """One line for each part that differs."""
    one, two = (json.loads(path.read_text()) for path in (old, new))
    lines = [f"{name}: only in {old if name in one else new}" for name in sorted({*one} ^ {*two})]
    for name in sorted({*one} & {*two}):
        parts = sorted({*one[name], *two[name]})
        lines += [
            f"{name}: {part}: {one[name].get(part)} | {two[name].get(part)}"
            for part in parts
            if one[name].get(part) != two[name].get(part)
        ]
    return lines


def main() -> int:
    """The command."""
    what, *rest = sys.argv[1:]
    if what == "record":
        record(Path(rest[0]), rest[1] if len(rest) > 1 else "")
        return 0
    lines = compare(Path(rest[0]), Path(rest[1]))
    count = len(json.loads(Path(rest[1]).read_text()))
    print("\n".join(lines) or f"the same bits in all {count} cases")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
