"""The stages of a call, walked without a conductor."""

from typing import Any

import jax

import temperance as tp
from temperance.engine.loop import Blocks, block_size
from temperance.engine.method import Call
from temperance.engine.options import parsed
from temperance.engine.run import Place
from temperance.methods import METHODS
from temperance.problems.problem import Problem, Target, densities_of


def shared_of(
    problem: Problem | Target,
    method: str = "pt",
    *,
    num_chains: int = 2,
    seed: int = 0,
    num_warmup: int = 60,
    num_draws: int = 40,
    move: Any = None,
    **options: Any,
) -> Any:
    """What the stages of a call share."""
    record = METHODS[method]
    given = parsed(method, record.options, options)
    call = Call(
        problem, densities_of(problem), move or tp.metropolis(), given, num_chains, num_warmup,
        num_draws, jax.random.key(seed), method, {"seed": seed, "progress": False,
        "precision": "double"},
    )  # fmt: skip
    return record.prepare(call)


def walk(shared: Any) -> tuple[list[Place], Any]:
    """All places, each round run to its end; and what the draws begin with."""
    stages = [one for one in METHODS[shared.call.method].stages if one.applies(shared)]
    stage = stages.pop(0)
    place, carry = stage.enter(shared, None)
    places = [place]
    size = block_size(shared.call.num_chains, shared.call.dimension)
    while not stage.draws:
        blocks = Blocks(stage.sampler(shared, place, carry), shared.key(place), 4, size)
        following, carry = stage.after(shared, place, blocks.learn(carry, 0, place.length)[0])
        if following is None:
            stage = stages.pop(0)
            following, carry = stage.enter(shared, carry)
        place = following
        places.append(place)
    return places, carry


def drawing(shared: Any) -> Any:
    """The stage that draws."""
    return METHODS[shared.call.method].stages[-1]
