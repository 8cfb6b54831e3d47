"""What the runs amount to: verdicts, tables in Markdown, and how sure the rates are."""

import statistics

from benchmarks.trust.roster import ROSTER
from scipy.stats import beta

COLUMNS = [
    "sampler", "case", "name", "family", "dimension", "seed", "probability", "probability_error",
    "exact_probability", "log_z", "log_z_error", "exact_log_z", "num_warnings", "warnings", "method", "why",
    "cpu_s", "wall_s", "versions", "machine", "failure",
]  # fmt: skip
NUMBERS = [
    "dimension", "seed", "probability", "probability_error", "exact_probability", "log_z", "log_z_error",
    "exact_log_z", "num_warnings", "cpu_s", "wall_s",
]  # fmt: skip

# A run is wrong beyond these.
PROBABILITY, LOG_Z = 0.1, 0.25
CONFIDENCE = 0.95
FIXED = "table"
EXPLAINED = (
    f"*Wrong*: a probability off by {PROBABILITY} or more, or log Z by {LOG_Z} or more; where a sampler gives no log Z, "
    "the probability alone decides. *Silent*: wrong without a warning. *Alarmed*: right, with a warning; its rate is "
    "among the runs that are right. *Failed*: no result, by an error or within the time allowed; these are in no other "
    f"column. In brackets are the {CONFIDENCE:.0%} intervals of Clopper and Pearson. Each run is a process of its own; CPU "
    "seconds count all its threads, and compilation, and neither imports nor the making of the target."
)


def failed(row):
    return bool(row["failure"])


def wrong(row):
    """Whether a run that ended is wrong. What is not a number is."""
    if not abs(row["probability"] - row["exact_probability"]) < PROBABILITY:
        return True
    # No log Z at all is no wrong one.
    return abs(row["log_z"] - row["exact_log_z"]) >= LOG_Z


def warned(row):
    return row["num_warnings"] > 0


def silent(row):
    return wrong(row) and not warned(row)


def alarmed(row):
    return not wrong(row) and warned(row)


def interval(count, of):
    """Clopper and Pearson's."""
    if not of:
        return 0.0, 1.0
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, count, of - count + 1) if count else 0.0
    high = beta.isf(tail, count + 1, of - count) if count < of else 1.0
    return float(low), float(high)


def rate(count, of):
    if not of:
        return "0 of 0"
    low, high = interval(count, of)
    return f"{count} of {of} ({100 * low:.1f} to {100 * high:.1f} %)"


def counts(rows):
    """How many ended, and were wrong, silent, alarmed and right, and how many failed."""
    ended = [row for row in rows if not failed(row)]
    bad = sum(map(wrong, ended))
    return {
        "ended": len(ended),
        "wrong": bad,
        "silent": sum(map(silent, ended)),
        "alarmed": sum(map(alarmed, ended)),
        "right": len(ended) - bad,
        "failed": len(rows) - len(ended),
    }


def line(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(header, body):
    return [line(header), line(["---"] * len(header)), *map(line, body), ""]


def samplers_in(rows):
    return [name for name in ROSTER if any(row["sampler"] == name for row in rows)]


def of(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def in_all(rows):
    """One line a sampler."""
    body = []
    for name in samplers_in(rows):
        mine = of(rows, sampler=name)
        n = counts(mine)
        seconds = [row["cpu_s"] for row in mine if not failed(row)]
        body.append(
            [
                ROSTER[name].label,
                rate(n["wrong"], n["ended"]),
                rate(n["silent"], n["ended"]),
                rate(n["alarmed"], n["right"]),
                n["failed"],
                f"{sum(seconds):.0f}",
                f"{statistics.median(seconds):.1f}" if seconds else "",
                ratio(mine, of(rows, sampler="former")),
            ]
        )
    return [
        "sampler", "wrong", "silent", "alarmed", "failed", "CPU s", "median", "times the former's",
    ], body  # fmt: skip


def ratio(mine, former):
    """CPU seconds over those of the former default, on the cases that both ended."""
    theirs = {row["case"]: row["cpu_s"] for row in former if not failed(row)}
    shared = [row for row in mine if not failed(row) and row["case"] in theirs]
    if not shared:
        return ""
    return f"{sum(row['cpu_s'] for row in shared) / sum(theirs[row['case']] for row in shared):.2f}"


def by_family(rows, name):
    mine = of(rows, sampler=name)
    body = []
    for family in dict.fromkeys(row["family"] for row in sorted(mine, key=order)):
        some = of(mine, family=family)
        n = counts(some)
        seconds = sum(row["cpu_s"] for row in some if not failed(row))
        body.append(
            [
                family,
                rate(n["wrong"], n["ended"]),
                rate(n["silent"], n["ended"]),
                rate(n["alarmed"], n["right"]),
                n["failed"],
                f"{seconds:.0f}",
            ]
        )
    return ["family", "wrong", "silent", "alarmed", "failed", "CPU s"], body


def fixed_targets(rows):
    body = []
    for name in samplers_in(rows):
        mine = of(rows, sampler=name)
        for target in dict.fromkeys(row["name"] for row in sorted(mine, key=order)):
            some = of(mine, name=target)
            ended = [row for row in some if not failed(row)]
            if not ended:
                body.append([target, ROSTER[name].label, f"0 of {len(some)}", "", "", "", "", ""])
                continue
            n = counts(some)
            body.append(
                [
                    target,
                    ROSTER[name].label,
                    f"{n['right']} of {len(some)}",
                    n["silent"],
                    n["alarmed"],
                    largest(ended, "probability", "exact_probability"),
                    largest(ended, "log_z", "exact_log_z"),
                    f"{max(row['cpu_s'] for row in ended):.1f}",
                ]
            )
    header = ["target", "sampler", "right", "silent", "alarmed", "largest error of the probability"]
    return [*header, "of log Z", "most CPU s"], sorted(body, key=lambda cells: cells[0])


def largest(rows, name, exact):
    errors = [abs(row[name] - row[exact]) for row in rows]
    errors = [error for error in errors if error == error]
    return f"{max(errors):.3f}" if errors else ""


def mistakes(rows, name):
    """Each wrong run of one sampler, for reading."""
    body = [
        [
            row["name"],
            f"{row['probability']:.3f} ({row['exact_probability']:.3f})",
            f"{row['log_z']:.2f} ({row['exact_log_z']:.2f})",
            row["warnings"] or "none",
        ]
        for row in sorted(of(rows, sampler=name), key=order)
        if not failed(row) and wrong(row)
    ]
    return ["target", "probability (exact)", "log Z (exact)", "warnings"], body


def order(row):
    """Samplers in the roster's order; random cases by number, then the fixed ones."""
    number = int(row["case"]) if row["case"].isdigit() else 10**9
    return list(ROSTER).index(row["sampler"]), number, row["case"]


def markdown(rows):
    random = [row for row in rows if row["family"] != FIXED]
    fixed = [row for row in rows if row["family"] == FIXED]
    machines = sorted({row["machine"] for row in rows})
    lines = ["# Trust", "", EXPLAINED, "", *machines, ""]
    if random:
        lines += ["## Random targets", "", *table(*in_all(random))]
        for name in samplers_in(random):
            lines += [f"### {ROSTER[name].label}", "", *table(*by_family(random, name))]
    if fixed:
        lines += ["## Fixed targets", "", *table(*fixed_targets(fixed))]
    header, body = mistakes(rows, "temperance")
    if body:
        lines += ["## Each wrong run of the default call", "", *table(header, body)]
    lines += ["## Versions", ""]
    for name in samplers_in(rows):
        versions = sorted({row["versions"] for row in of(rows, sampler=name) if row["versions"]})
        lines += [f"- {ROSTER[name].label}: {'; '.join(versions) or 'no run ended'}"]
    failures = [row for row in rows if failed(row)]
    if failures:
        lines += ["", "## Failures", ""]
        lines += table(
            ["target", "sampler", "what it said"],
            [[row["name"], ROSTER[row["sampler"]].label, row["failure"]] for row in failures],
        )
    return "\n".join(lines).rstrip() + "\n"
