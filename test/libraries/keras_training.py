"""keras on its JAX backend: a convolutional net, an LSTM and attention trained by `fit`, `predict`, saved weights."""

import json
import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import keras  # noqa: E402
import numpy as np  # noqa: E402

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
images = rng.standard_normal((64, 8, 8, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int32")
net = keras.Sequential([
    keras.layers.Input((8, 8, 1)),
    keras.layers.Conv2D(8, 3, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.2, seed=1),
    keras.layers.Dense(2, activation="softmax"),
])  # fmt: skip
net.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
history = net.fit(images, labels, epochs=3, batch_size=16, shuffle=False, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net.weights.h5")
    predicted = net.predict(images[:4], verbose=0)
    net.save_weights(path)
    net.load_weights(path)

steps = keras.Input((6, 5))
hidden = keras.layers.LSTM(8, return_sequences=True)(steps)
hidden = keras.layers.MultiHeadAttention(2, 4)(hidden, hidden)
hidden = keras.layers.LayerNormalization()(hidden)
out = keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(hidden))
model = keras.Model(steps, out)
model.compile(keras.optimizers.AdamW(0.01), "mse")
x = rng.standard_normal((32, 6, 5)).astype("float32")
y = x.sum((1, 2))[:, None]
losses = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0).history["loss"]

print(json.dumps({
    "losses": history.history["loss"], "accuracy": history.history["accuracy"],
    "predicted": predicted.tolist(), "evaluated": net.evaluate(images, labels, verbose=0),
    "sequence losses": losses, "sequences": model.predict(x[:3], verbose=0).tolist(),
}))  # fmt: skip
