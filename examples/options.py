"""Prices of options by Monte Carlo, and their Greeks by differentiating the simulation.

    python examples/options.py

A European call is checked against the formula of Black and Scholes (1973), price and all Greeks; an
Asian call (on the mean of the path) and a smoothed barrier call have no formula, and need none.
"""

import functools

import lamina
import lamina.numpy as jnp
from lamina import lax, random
from lamina.scipy.stats import norm

MARKET = {"spot": 100.0, "volatility": 0.2, "rate": 0.03, "maturity": 1.0}
STRIKE = 105.0


def black_scholes(market):
    """The exact price of a European call."""
    s, v, r, t = (market[k] for k in ("spot", "volatility", "rate", "maturity"))
    d1 = (jnp.log(s / STRIKE) + (r + v**2 / 2) * t) / (v * jnp.sqrt(t))
    d2 = d1 - v * jnp.sqrt(t)
    return s * norm.cdf(d1) - STRIKE * jnp.exp(-r * t) * norm.cdf(d2)


def paths(market, normals):
    """Final price, mean and smooth maximum of each path; normals are [steps, paths]."""
    steps = len(normals)
    dt = market["maturity"] / steps
    v = market["volatility"]

    def step(state, z):
        log_price, total, highest = state
        log_price = log_price + (market["rate"] - v**2 / 2) * dt + v * jnp.sqrt(dt) * z
        price = jnp.exp(log_price)
        return (log_price, total + price, jnp.maximum(highest, price)), None

    start = jnp.full(normals.shape[1], jnp.log(market["spot"]))
    first = start, jnp.zeros_like(start), jnp.exp(start)
    (last, total, highest), _ = lax.scan(step, first, normals)
    return jnp.exp(last), total / steps, highest


def prices(market, normals):
    """Discounted mean payoffs of a European, an Asian and an up-and-out call."""
    last, mean, highest = paths(market, normals)
    alive = lamina.nn.sigmoid(2 * (140 - highest))
    payoffs = jnp.stack([lamina.nn.relu(last - STRIKE), lamina.nn.relu(mean - STRIKE),
                         lamina.nn.relu(last - STRIKE) * alive])  # fmt: skip
    discounted = jnp.exp(-market["rate"] * market["maturity"]) * payoffs
    return jnp.mean(discounted, axis=1), jnp.std(discounted, axis=1)


@functools.partial(lamina.jit, static_argnums=(2, 3))
def run(key, market, steps, count):
    """Prices with standard errors, and Greeks, by simulation and exact."""
    half = random.normal(key, (steps, count // 2))
    normals = jnp.concatenate([half, -half], axis=1)  # antithetic paths: less variance
    price, spread = prices(market, normals)
    greeks = lamina.jacfwd(lambda m: prices(m, normals)[0])(market)
    exact, exact_greeks = lamina.value_and_grad(black_scholes)(market)
    return {
        "price": price,
        "error": spread / jnp.sqrt(count),
        "delta": greeks["spot"],
        "vega": greeks["volatility"],
        "rho": greeks["rate"],
        "exact": jnp.stack([exact, *(exact_greeks[k] for k in ("spot", "volatility", "rate"))]),
        "gamma": lamina.grad(lamina.grad(lambda s: black_scholes(market | {"spot": s})))(
            market["spot"]
        ),
    }


def main(steps=50, count=16384, seed=0):
    return run(random.key(seed), MARKET, steps, count)


if __name__ == "__main__":
    result = lamina.device_get(main())
    print("             price            delta   vega    rho")
    for i, name in enumerate(("European", "Asian", "barrier")):
        print(f"{name:9} {result['price'][i]:8.3f} +- {result['error'][i]:.3f} "
              f"{result['delta'][i]:8.3f} {result['vega'][i]:6.2f} {result['rho'][i]:6.2f}")  # fmt: skip
    price, delta, vega, rho = result["exact"]
    print(f"exact     {price:8.3f}          {delta:8.3f} {vega:6.2f} {rho:6.2f}   "
          f"gamma {result['gamma']:.4f}")  # fmt: skip
