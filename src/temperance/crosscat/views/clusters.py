"""The clusters of a view, and which row is in which.

Each cluster has a place, and all that is kept of clusters is arrays over places, so that one vector
operation scores a row against all of them. A cluster that loses its last row leaves a hole: its
counts are then zero of themselves, and nothing is moved. One hole is the *empty table*, with the
mass of a new cluster; it is the lowest hole, which keeps the used places together. With K clusters,
n rows, concentration alpha and discount d, the mass of a place in a Pitman-Yor process is

    n_k - d          of cluster k,
    alpha + d K      of the empty table,
    0                of any other hole.

Each row has the number of its place, in each view, which is most of what many views of many rows
take in memory: the numbers are short while places are few.

Places are padded to whole vectors, and arrays over them to an odd number of cache lines, since
strides of powers of two would put every feature's counts into the same lines of the cache.
"""

from typing import Any, NamedTuple

import numpy as np

from temperance.crosscat.compilation import compiled, inner

LANES = 16
NUM_CLUSTERS, NUM_ROWS, EMPTY, USED = 0, 1, 2, 3
ABSENT, FULL = -1, -1
SHORT, LONG = np.int16, np.int32


class Clusters(NamedTuple):
    """Who sits where.

    `head` has the number of clusters, of rows, the empty table and the lanes in use.
    """

    labels: Any  # int16[N] or int32[N], the place of a row's cluster, ABSENT if it is not in
    size: Any  # int64[stride]
    mass: Any  # float64[stride]
    head: Any  # int64[4]
    params: Any  # float64[2]: alpha and d


def padded(num_places: int) -> int:
    """The stride for that many places: an odd number of cache lines."""
    lines = -(-num_places // LANES)
    return LANES * (lines if lines % 2 else lines + 1)


def no_labels(num_rows: int) -> np.ndarray:
    """Labels of rows of which none is in."""
    return np.full(num_rows, ABSENT, SHORT)


def empty_clusters(
    num_rows: int, alpha: float, d: float, labels: np.ndarray | None = None
) -> Clusters:
    """No row is in; `labels`, if given, is used for them."""
    clusters = Clusters(
        no_labels(num_rows) if labels is None else labels,
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.float64),
        np.zeros(4, np.int64),
        np.array([alpha, d], np.float64),
    )
    weigh_places(clusters)
    return clusters


@compiled
def weigh_places(clusters: Any) -> None:
    """The masses of all places, from their sizes and the process's parameters."""
    num, rows = 0, 0
    for k in range(clusters.size.shape[0]):
        size = clusters.size[k]
        clusters.mass[k] = size - clusters.params[1] if size > 0 else 0.0
        num += size > 0
        rows += size
    clusters.head[NUM_CLUSTERS] = num
    clusters.head[NUM_ROWS] = rows
    clusters.head[EMPTY] = FULL
    _choose_empty(clusters)


@inner
def _choose_empty(clusters: Any) -> None:
    """The lowest hole becomes the empty table, if there is one; the lanes in use are counted."""
    stride = clusters.size.shape[0]
    empty = 0
    while empty < stride and clusters.size[empty] > 0:
        empty += 1
    last = stride
    while last > 0 and clusters.size[last - 1] == 0:
        last -= 1
    if empty == stride:
        clusters.head[EMPTY] = FULL
    else:
        clusters.head[EMPTY] = empty
        clusters.mass[empty] = clusters.params[0] + clusters.params[1] * clusters.head[NUM_CLUSTERS]
        last = max(last, empty + 1)
    clusters.head[USED] = LANES * ((last + LANES - 1) // LANES)


@inner
def seat(clusters: Any, row: int, k: int) -> None:
    """A row sits down at place k."""
    size, head = clusters.size, clusters.head
    clusters.labels[row] = k
    size[k] += 1
    head[NUM_ROWS] += 1
    if size[k] > 1:
        clusters.mass[k] = size[k] - clusters.params[1]
    else:
        clusters.mass[k] = 1.0 - clusters.params[1]
        head[NUM_CLUSTERS] += 1
        _choose_empty(clusters)


@inner
def unseat(clusters: Any, row: int) -> int:
    """A row stands up; returns the place it leaves."""
    size, head = clusters.size, clusters.head
    k = int(clusters.labels[row])
    clusters.labels[row] = ABSENT
    size[k] -= 1
    head[NUM_ROWS] -= 1
    if size[k] > 0:
        clusters.mass[k] = size[k] - clusters.params[1]
    else:
        clusters.mass[k] = 0.0
        head[NUM_CLUSTERS] -= 1
        if head[EMPTY] != FULL:
            clusters.mass[head[EMPTY]] = 0.0
        _choose_empty(clusters)
    return k


def widened(clusters: Clusters, stride: int) -> Clusters:
    """The same clusters with room for more."""
    size = np.zeros(stride, np.int64)
    size[: len(clusters.size)] = clusters.size
    labels = clusters.labels
    if stride > np.iinfo(labels.dtype).max:
        labels = labels.astype(LONG)
    wider = clusters._replace(labels=labels, size=size, mass=np.zeros(stride))
    weigh_places(wider)
    return wider
