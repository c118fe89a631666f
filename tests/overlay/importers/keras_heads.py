"""A detector of Keras with four outputs: classes and boxes of two heads, a task of the whole image, and a map.

``python -m tests.overlay.importers.keras_heads``, with TensorFlow 2.21, writes data/heads.tflite again, and
data/heads.npz: images ``x``, and each output by its name, of TFLite's reference kernels
(``OpResolverType.BUILTIN_REF``).
"""

from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"


def main() -> None:
    import tensorflow as tf

    tf.random.set_seed(1)
    rng = np.random.default_rng(0)
    layers = tf.keras.layers
    x = source = layers.Input((24, 24, 3), batch_size=1)
    maps = []
    for channels in (8, 12, 16):
        x = layers.Conv2D(channels, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        maps.append(x)
    classes = [layers.Reshape((-1, 3))(layers.Conv2D(6, 3, padding="same")(each)) for each in maps[1:]]
    boxes = [layers.Reshape((-1, 4))(layers.Conv2D(8, 3, padding="same")(each)) for each in maps[1:]]
    heads = [layers.Softmax(axis=-1)(layers.Concatenate(axis=1)(classes)), layers.Concatenate(axis=1)(boxes)]
    task = layers.Dense(5, activation="sigmoid")(layers.GlobalAveragePooling2D()(maps[2]))
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(source, [*heads, task, maps[1]]))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([rng.random((1, 24, 24, 3)).astype(np.float32)] for _ in range(20))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    data = converter.convert()
    resolver = tf.lite.experimental.OpResolverType.BUILTIN_REF
    interpreter = tf.lite.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    images = rng.integers(-128, 128, (3, 24, 24, 3)).astype(np.int8)
    outputs = {output["name"]: [] for output in interpreter.get_output_details()}
    for image in images:
        interpreter.set_tensor(given["index"], image[None])
        interpreter.invoke()
        for output in interpreter.get_output_details():
            outputs[output["name"]].append(interpreter.get_tensor(output["index"])[0].copy())
    (DATA / "heads.tflite").write_bytes(data)
    np.savez_compressed(DATA / "heads.npz", x=images, **{name: np.stack(values) for name, values in outputs.items()})


if __name__ == "__main__":
    main()
