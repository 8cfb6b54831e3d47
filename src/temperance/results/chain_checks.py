"""What the draws of a run say of themselves, whatever the method: warnings and notes.

R-hat        a warning where chains are further apart than chance sets chains of one law, and
             not by a trifle (estimates/agreement.py)
ESS          a warning below 100 in all, a note below 100 a chain
turning back a warning, by variable (estimates/turning_back.py)
divergences  a note, where no end of a variable explains them; a warning where ends cannot be
             judged and divergences are many
tails        a note, by variable (estimates/tails.py)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from temperance.estimates.tails import tail_shape
from temperance.estimates.turning_back import End, ends_that_turn_back, enough_draws

# R-hat at which chains that disagree matter, how unlikely it has to be in all variables together,
# and what is wanted of chains whose draws do not come in the order of time.
RHAT, UNLIKELY, RHAT_ALONE = 1.005, 1e-3, 1.05
FEWEST, FEW_PER_CHAIN = 100, 100
# Where there are few draws as well, this R-hat is named beside them.
RHAT_LARGE, SURELY = 1.2, 1e-2
# The shape of a tail from which there is no variance.
NO_VARIANCE = 0.5
# The share of draws with a divergent trajectory that is many, and the share of draws that is early.
MANY_DIVERGENT, EARLY = 0.01, 0.1
MOST_NAMES = 3
SHORTER_STEPS = (
    "take shorter steps (tp.hmc(target_acceptance=0.95)), a move with steps of local size "
    "(move=tp.auto_step()), or coordinates in which the scale does not change (non-centred ones)"
)


class Chains:
    """Warnings and notes of a run's draws, given its table.

    `serial` says that the draws of a chain come one from the other, and `weighted` that they are
    not all at the target. `vouched(variable, low)` says whether it is known from elsewhere that no
    mass is missing at an end of a variable.
    """

    def __init__(
        self,
        tree: Any,
        table: Any,
        *,
        serial: bool,
        weighted: bool,
        remedy: str,
        vouched: Callable[[int, bool], bool] = lambda _variable, _low: False,
    ):
        self.tree, self.table = tree, table
        self.serial, self.weighted, self.remedy = serial, weighted, remedy
        self.names, self.position = scalars(tree)
        ends = self._ends()
        self.fine = [end for end in ends or () if vouched(end.variable, end.sign < 0)]
        self.ends = None if ends is None else [end for end in ends if end not in self.fine]

    def warnings(self) -> list[str]:
        found = []
        if self.tree["posterior"].sizes["chain"] == 1:
            found.append("one chain cannot be compared with another: run at least four")
        found += disagreement(self.table, self.remedy, serial=self.serial)
        worst, size = self._worst_size()
        if size < FEWEST:
            found.append(
                f"few independent draws: {self._kind()} of {worst} is {size:.0f}, so that means "
                f"are known to {1 / np.sqrt(max(size, 1.0)):.2f} standard deviations (want "
                f"{FEWEST} in all); draw more, or give a move that goes further"
            )
        if self.ends:
            found.append(turning_back(self.ends, self.names))
        elif self._divergent() and self.ends is None and self._share() >= MANY_DIVERGENT:
            found.append(
                f"{self._divergent()} divergent trajectories at the target, in {self._share():.1%} "
                "of the draws, and too little is known to say where: the step may be too long in a "
                "region with mass; draw more to see, or raise target_acceptance"
            )
        return found

    def notes(self) -> list[str]:
        found = []
        chains = self.tree["posterior"].sizes["chain"]
        worst, size = self._worst_size()
        if FEWEST <= size < FEW_PER_CHAIN * chains:
            found.append(
                f"{self._kind()} of {worst} is {size:.0f}: means are known to "
                f"{1 / np.sqrt(size):.2f} standard deviations, and quantiles less well"
            )
        if not self.ends and not (self.ends is None and self._share() >= MANY_DIVERGENT):
            found += self._divergences()
        if self.fine:
            found.append(
                f"moves are refused at {at_ends(self.fine, self.names)}, where the reference's own "
                "draws find no more mass than the run's"
            )
        return found + self._tails()

    def _ends(self) -> list[End] | None:
        """None where they cannot be judged."""
        stats = self.tree["sample_stats"].dataset
        if self.weighted or not self.serial or "acceptance_rate" not in stats:
            return None
        rates = np.asarray(stats["acceptance_rate"].values, np.float64)
        if not enough_draws(rates):
            return None
        return ends_that_turn_back(self.position, rates, stats["diverging"].values)

    def _worst_size(self) -> tuple[str, float]:
        sizes = self.table["ess" if self.weighted else "ess_bulk"].astype(float)
        return (str(sizes.idxmin()), float(sizes.min())) if sizes.notna().any() else ("", np.inf)

    def _kind(self) -> str:
        return "ESS" if self.weighted else "bulk ESS"

    def _divergent(self) -> int:
        return int(self.tree["sample_stats"]["diverging"].sum())

    def _share(self) -> float:
        return float(self.tree["sample_stats"]["diverging"].mean())

    def _divergences(self) -> list[str]:
        if not self._divergent():
            return []
        which = self.tree["sample_stats"]["diverging"].values
        words = f"{self._divergent()} divergent trajectories at the target"
        if not which[:, int(EARLY * which.shape[1]) :].any():
            return [f"{words}, all of them in the first tenth of the draws"]
        where = ""
        if self.ends is not None:
            where = "; they are at no end of a variable where chains turn back"
        share = f"in {self._share():.2%} of the draws"
        return [f"{words}, {share}{where}. A higher target_acceptance makes them fewer"]

    def _tails(self) -> list[str]:
        if self.weighted:
            return []
        names, draws = scalars(self.tree, "posterior")
        shapes = np.array([tail_shape(draws[..., i]) for i in range(len(names))])
        heavy = np.flatnonzero(np.nan_to_num(shapes) > NO_VARIANCE)
        if not heavy.size:
            return []
        worst = heavy[np.argsort(-shapes[heavy])]
        named = listed([names[i] for i in worst])
        words = (
            f"heavy tails: {named} (tail shape {shapes[worst[0]]:.2f}; from 0.5 upwards there is "
            "no variance, from 1 no mean): report quantiles, and not means and standard deviations"
        )
        return [words]


def disagreement(table: Any, remedy: str, *, serial: bool) -> list[str]:
    """Whether chains are apart, by the columns of R-hat, of its chance, and of effective sizes."""
    column = "r_hat" if "r_hat" in table else "rhat"
    if column not in table:
        return []
    rhat, chance = table[column].astype(float), table["r_hat_chance"].astype(float)
    apart = (rhat > RHAT) & (chance < UNLIKELY / max(chance.notna().sum(), 1))
    if not serial:
        apart = rhat > RHAT_ALONE
    sizes = table["ess_bulk" if "ess_bulk" in table else "ess"].astype(float)
    apart |= (rhat > RHAT_LARGE) & (sizes < FEWEST)
    if not apart.any():
        return []
    worst = str(rhat[apart].idxmax())
    more = f", and {apart.sum() - 1} more are too large" if apart.sum() > 1 else ""
    likely = ""
    if serial and chance[worst] < SURELY:
        likely = f", which chance explains with a probability of {chance[worst]:.0e}"
    return [f"chains disagree: R-hat of {worst} is {rhat[worst]:.3f}{likely}{more}; {remedy}"]


def turning_back(ends: list[End], names: list[str]) -> str:
    """What it means that chains turn back at these ends, the worst of which comes first."""
    worst, where = ends[0], at_ends(ends, names)
    split = f", and {worst.diverging} trajectories diverge" if worst.diverging else ""
    return (
        f"chains turn back at {where}: of the moves from the outermost 2 % of its draws "
        f"{worst.acceptance:.0%} are accepted, against {worst.usual:.0%} usually{split}, so that "
        f"mass beyond may be missing; {SHORTER_STEPS}"
    )


def at_ends(ends: list[End], names: list[str]) -> str:
    """Which ends these are."""
    return listed([f"the {'low' if end.sign < 0 else 'high'} end of {names[end.variable]}"
                   for end in ends])  # fmt: skip


def listed(names: list[str]) -> str:
    """The first few, and how many there are more."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def scalars(tree: Any, group: str = "") -> tuple[list[str], np.ndarray]:
    """Names and draws (chain, draw, scalar), of the positions as the moves see them by default."""
    if not group:
        group = "unconstrained_posterior"
        group = group if group in tree.children else "posterior"
    names, parts = [], []
    for name, array in tree[group].dataset.data_vars.items():
        values = np.asarray(array.values, float)
        flat = values.reshape(*values.shape[:2], -1)
        index = np.ndindex(*values.shape[2:])
        names += [f"{name}[{', '.join(map(str, i))}]" if i else str(name) for i in index]
        parts.append(flat)
    return names, np.concatenate(parts, axis=-1)
