"""temp"""
from dataclasses import replace
import equinox as eqx, jax, jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from temperance.move import AbstractMove, Info, acceptance_of
from temperance.moves.metropolis import checked_metric, checked_step
from temperance.moves.fast_slow import scales_of
class SingleSite(AbstractMove):
    step_sizes: tuple = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    target_acceptance: tuple = eqx.field(static=True, default=(0.44,))
    trailing: int = eqx.field(static=True, default=0)
    reversible: bool = eqx.field(static=True, default=False)
    exact: bool = eqx.field(static=True, default=True)
    uses_gradient: bool = eqx.field(static=True, default=False)
    def step(self, key, point, rung, params):
        flat, unravel = ravel_pytree(point.position)
        d = flat.size - self.trailing
        sc = params.step_size[0]*scales_of(params.factor, jnp.arange(flat.size))
        def one(point, a):
            i, key = a
            z = jax.random.normal(key, flat.shape); u = jax.random.uniform(jax.random.fold_in(key,1))
            moved = (jnp.arange(flat.size)==i)|(jnp.arange(flat.size)>=d)
            x = ravel_pytree(point.position)[0]
            prop = rung.evaluate(unravel(x+jnp.where(moved, sc*z, 0.)), gradient=False)
            acc, lr = acceptance_of(rung.log_density(prop)-rung.log_density(point))
            ok = jnp.log(u) < lr
            return jax.tree.map(lambda a,b: jnp.where(ok,a,b), prop, point._replace(gradients=None)), (acc, ok)
        point, (acc, ok) = jax.lax.scan(one, point._replace(gradients=None), (jnp.arange(d), jax.random.split(key, d)))
        return point, Info(jnp.mean(acc)[None], jnp.any(ok), jnp.asarray(False), jnp.asarray(d), jnp.asarray(d))
def single_site(scale=None, metric="diagonal"):
    return SingleSite(step_sizes=(checked_step(scale,"scale"),), metric=checked_metric(metric))
