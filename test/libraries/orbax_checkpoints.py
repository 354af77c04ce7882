"""orbax: a training state saved and restored, with steps that are kept."""

import json
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

tx = optax.adam(0.1)
params = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16)}
state = {"params": params, "opt": tx.init(params), "step": 3}
with tempfile.TemporaryDirectory() as folder:
    checkpointer = ocp.StandardCheckpointer()
    checkpointer.save(Path(folder) / "one", state)
    checkpointer.wait_until_finished()
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
    back = checkpointer.restore(Path(folder) / "one", abstract)
    with ocp.CheckpointManager(Path(folder) / "many", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave({"x": jnp.full(4, float(step))}))
        manager.wait_until_finished()
        steps = list(manager.all_steps())
        last = manager.restore(3, args=ocp.args.StandardRestore({"x": jnp.zeros(4)}))
same = jax.tree.map(lambda x, y: float(np.array_equal(np.asarray(x), np.asarray(y))), state, back)
print(json.dumps({
    "same": jax.tree.leaves(same), "steps": [float(s) for s in steps], "last": last["x"].tolist(),
    "on": [float(str(leaf.devices()) == str(params["w"].devices())) for leaf in jax.tree.leaves(back["params"])],
}))  # fmt: skip
