"""PageRank of a random web by power iteration, and which page would gain by a new link.

    python examples/pagerank.py

The graph is a list of edges, so that one step is a gather and a segment_sum. The iteration stops by
itself (while_loop); the gradient of a rank by link weights comes from a fixed number of steps.
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, random

DAMPING = 0.85


def random_web(key, pages, links):
    """Sources and targets of links; a few pages attract most of them."""
    k1, k2 = random.split(key)
    source = random.randint(k1, (links,), 0, pages)
    target = (pages * random.uniform(k2, (links,)) ** 3).astype(jnp.int32)
    return source, target


def step(rank, source, target, weight):
    """One round: every page gives its rank to the pages it links to, in parts by weight."""
    pages = len(rank)
    given = lamina.ops.segment_sum(weight, source, pages)
    flow = rank[source] * weight / jnp.maximum(given, 1e-9)[source]
    stuck = jnp.sum(jnp.where(given > 0, 0, rank))
    arrived = lamina.ops.segment_sum(flow, target, pages)
    return (1 - DAMPING) / pages + DAMPING * (arrived + stuck / pages)


def pagerank(source, target, weight, pages, tolerance=1e-6):
    """The ranks, and the rounds it took until they changed by less than the tolerance."""

    def moving(state):
        rank, before, _ = state
        return jnp.sum(jnp.abs(rank - before)) > tolerance

    def again(state):
        rank, _, rounds = state
        return step(rank, source, target, weight), rank, rounds + 1

    start = jnp.full(pages, 1 / pages)
    rank, _, rounds = lax.while_loop(moving, again, (start, jnp.zeros(pages), 0))
    return rank, rounds


def rank_of(page, source, target, weight, pages):
    """The rank of one page after 40 rounds: a function to differentiate."""
    start = jnp.full(pages, 1 / pages)
    return lax.fori_loop(0, 40, lambda _, r: step(r, source, target, weight), start)[page]


@functools.partial(lamina.jit, static_argnums=(1, 2))
def run(key, pages, links):
    """Ranks of a random web, its best pages, and the links that matter most to the best."""
    source, target = random_web(key, pages, links)
    weight = jnp.ones(links)
    rank, rounds = pagerank(source, target, weight, pages)
    best, top = lax.top_k(rank, 5)
    gain = lamina.grad(rank_of, argnums=3)(top[0], source, target, weight, pages)
    worth, link = lax.top_k(gain, 3)
    return {"total": jnp.sum(rank), "rounds": rounds, "top": top, "best": best,
            "helpers": source[link], "worth": worth}  # fmt: skip


def main(pages=400, links=3000, seed=0):
    return run(random.key(seed), pages, links)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print(f"converged in {result['rounds']} rounds, ranks sum to {result['total']:.6f}")
    for page, rank in zip(result["top"], result["best"]):
        print(f"page {page:3d}: {rank:.4f}")
    print(f"page {result['top'][0]} owes most to links from pages {result['helpers']}")
