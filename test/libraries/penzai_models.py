"""penzai: named axes, models taken apart and patched, training of an MLP, a small transformer."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from penzai import pz
from penzai.models import simple_mlp
from penzai.models.transformer.variants import llamalike_common
from penzai.toolshed import basic_training

rng = np.random.default_rng(0)
x = pz.nx.wrap(jnp.asarray(rng.normal(size=(16, 4)).astype("float32")), "batch", "features")
labels = jnp.asarray(rng.integers(0, 3, 16))
model = simple_mlp.MLP.from_config(
    name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[4, 8, 3], activation_fn=jax.nn.relu
)


def loss(model, rng, state, x, labels):
    scores = model(x).unwrap("batch", "features")
    value = optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()
    return value, state, {"loss": value}


trainer = basic_training.StatefulTrainer.build(
    root_rng=jax.random.key(1), model=model, optimizer_def=optax.adam(1e-2), loss_fn=loss,
    initial_loss_fn_state=None,
)  # fmt: skip
losses = [float(trainer.step(x=x, labels=labels)["loss"]) for _ in range(4)]
doubled = (
    pz.select(model)
    .at_instances_of(pz.nn.Linear)
    .insert_after(pz.nn.Elementwise(lambda v: 2 * v))
)
named = pz.nx.arange("row", 3) * pz.nx.ones({"column": 2}) + pz.nx.wrap(jnp.arange(3.0)).tag("row")
config = llamalike_common.LlamalikeTransformerConfig(
    num_kv_heads=2, query_head_multiplier=1, embedding_dim=8, projection_dim=4,
    mlp_hidden_dim=16, num_decoder_blocks=2, vocab_size=11, mlp_variant="geglu_approx",
    tie_embedder_and_logits=True, rope_wavelength=10_000, rms_norm_eps=1e-6,
    attention_type=llamalike_common.AttentionTypeGlobalCausal(), parameter_dtype=jnp.float32,
)  # fmt: skip
transformer = llamalike_common.build_llamalike_transformer(config, init_base_rng=jax.random.key(2))
tokens = pz.nx.wrap(jnp.asarray(rng.integers(0, 11, (2, 5))), "batch", "seq")
frozen, parameters = pz.unbind_params(transformer, freeze=True)


@jax.jit
def run(parameters, tokens):
    whole = pz.bind_variables(frozen, parameters)
    return whole(tokens, token_positions=pz.nx.arange("seq", 5))


scores = run(parameters, tokens)
print(
    json.dumps(
        {
            "losses": losses,
            "parameters": [
                float(jnp.abs(v.value.unwrap(*v.value.named_shape)).sum())
                for v in pz.select(model).at_instances_of(pz.Parameter).get_sequence()
            ],
            "doubled": doubled(x).unwrap("batch", "features").tolist(),
            "named": named.unwrap("row", "column").tolist(),
            "mean": float(pz.nx.nmap(jnp.mean)(x.untag("batch", "features")).unwrap()),
            "transformer": scores.unwrap("batch", "seq", "vocabulary").tolist(),
            "length of the text": len(repr(model)) > 100,
        }
    )
)
