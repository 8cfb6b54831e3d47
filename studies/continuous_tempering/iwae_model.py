"""Images from importance-weighted autoencoders, and the posteriors of what is behind them.

An image x of 784 pixels has a latent vector z of 50 numbers:

    z ~ N(0, I),      x_j ~ Bernoulli(sigmoid(l_j(z))),      l a network 50-200-200-784 with tanh.

The encoder maps an image to the mean and the standard deviations of a normal law for z, which is the base of that
image's posterior. The trained networks are those of the paper. Images are drawn from the model itself, so that each
comes with an exact draw of its posterior: the z that it was drawn with. A guess of log p(x) is the log mean of
importance weights from the base.

All images are one batch: a posterior, a base and a sampler are built inside a `vmap` over (mean, sd, image), so that
the networks' matrices are shared and every layer is one product for all images.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

DIMENSION, NUM_PIXELS = 50, 784
NAMES = ("mnist", "omniglot")
FILES = ("decoder", "encoder_h", "encoder_mean", "encoder_std")
LOG_TWO_PI = float(np.log(2 * np.pi))

Layers = list[tuple[Array, Array]]


class Networks(NamedTuple):
    """Matrices and offsets of the decoder and of the encoder's three parts."""

    decoder: Layers
    encoder: Layers
    mean: Layers
    std: Layers


class Images(NamedTuple):
    """Images, the latent vectors that they were drawn with, their bases and guesses of log Z."""

    pixels: Float[Array, "images pixels"]
    exact: Float[Array, "images d"]
    mean: Float[Array, "images d"]
    std: Float[Array, "images d"]
    log_zeta: Float[Array, " images"]


def load(folder: Path, dtype: Any = np.float32) -> Networks:
    """The networks of one model, from plain arrays."""

    def layers(name: str) -> Layers:
        with np.load(folder / f"{name}_params.npz") as stored:
            numbers = sorted(int(key[1:]) for key in stored.files if key.startswith("W"))
            return [
                (jnp.asarray(stored[f"W{i}"], dtype), jnp.asarray(stored[f"b{i}"][0], dtype))
                for i in numbers
            ]

    return Networks(*(layers(name) for name in FILES))


def made(key: Array, dtype: Any = np.float32, width: int = 20, num_pixels: int = 30) -> Networks:
    """Small networks that nobody trained, for tests."""

    def layers(key: Array, *sizes: int) -> Layers:
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
        return [
            (jax.random.normal(k, (a, b), dtype) * (2 / a) ** 0.5, jnp.zeros((b,), dtype))
            for k, a, b in pairs
        ]

    decoder, encoder, mean, std = jax.random.split(key, 4)
    return Networks(
        layers(decoder, 5, width, width, num_pixels),
        layers(encoder, num_pixels, width, width),
        [(0.1 * matrix, offset) for matrix, offset in layers(mean, width, 5)],
        [(0.1 * matrix, offset) for matrix, offset in layers(std, width, 5)],
    )


def through(layers: Layers, x: Array, *, last: bool) -> Array:
    """Tanh layers; `last` says that the last one has no tanh after it."""
    for i, (matrix, offset) in enumerate(layers):
        x = x @ matrix + offset
        if not (last and i == len(layers) - 1):
            x = jnp.tanh(x)
    return x


class Normal(eqx.Module):
    """Log N(z; mean, sd^2), normalised: the base, and with zeros and ones the prior."""

    mean: Array
    std: Array

    def __call__(self, z: Array) -> Array:
        away = (z - self.mean) / self.std
        constant = jnp.sum(jnp.log(self.std)) + 0.5 * z.size * LOG_TWO_PI
        return -0.5 * jnp.sum(away**2) - constant

    def draw(self, key: Array) -> Array:
        return self.mean + self.std * jax.random.normal(key, self.mean.shape, self.mean.dtype)


class LatentPosterior(eqx.Module):
    """Log p(z) + log p(x | z) of one image, whose integral is p(x)."""

    decoder: Layers
    pixels: Array

    def __call__(self, z: Array) -> Array:
        logits = through(self.decoder, z, last=True)
        fits = jnp.sum(self.pixels * logits - jax.nn.softplus(logits))
        return fits - 0.5 * jnp.sum(z**2) - 0.5 * z.size * LOG_TWO_PI


def encode(networks: Networks, pixels: Array) -> tuple[Array, Array]:
    """The base of an image: mean and standard deviations."""
    hidden = through(networks.encoder, pixels, last=False)
    log_std = through(networks.std, hidden, last=True)
    return through(networks.mean, hidden, last=True), jnp.exp(log_std)


def generated(networks: Networks, key: Array, num_images: int, num_draws: int = 5000) -> Images:
    """Images drawn from the model, with importance-weighted guesses of their log p(x)."""
    key_z, key_x, key_weights = jax.random.split(key, 3)
    matrix = networks.decoder[0][0]
    exact = jax.random.normal(key_z, (num_images, matrix.shape[0]), matrix.dtype)
    logits = jax.vmap(lambda z: through(networks.decoder, z, last=True))(exact)
    pixels = jax.random.bernoulli(key_x, jax.nn.sigmoid(logits)).astype(matrix.dtype)
    mean, std = jax.vmap(lambda x: encode(networks, x))(pixels)

    @jax.jit
    def weigh(key: Array) -> Array:
        def one(mean: Array, std: Array, image: Array, key: Array) -> Array:
            base, posterior = Normal(mean, std), LatentPosterior(networks.decoder, image)
            z = base.draw(key)
            return posterior(z) - base(z)

        return jax.vmap(one)(mean, std, pixels, jax.random.split(key, num_images))

    logs = jax.lax.map(weigh, jax.random.split(key_weights, num_draws))
    log_zeta = jax.nn.logsumexp(logs, axis=0) - np.log(num_draws)
    return Images(pixels, exact, mean, std, log_zeta)


class OneImage(NamedTuple):
    """What is known of one image: its base, its posterior, a guess of log Z, and an exact draw."""

    base: Normal
    posterior: LatentPosterior
    log_zeta: Array
    exact: Array


def over_images(
    images: Images, function: Callable[..., Any], networks: Networks
) -> Callable[..., Any]:
    """`function(one_image, *rest)` for all images at once."""

    def one(image: Images, *rest: Any) -> Any:
        base = Normal(image.mean, image.std)
        posterior = LatentPosterior(networks.decoder, image.pixels)
        return function(OneImage(base, posterior, image.log_zeta, image.exact), *rest)

    return lambda *rest: jax.vmap(one)(images, *rest)
