#!/usr/bin/python3
"""Writes options.json: what options.test.mjs compares training options with.

- steps: a perceptron's parameters after three steps of every optimizer with its options, by torch.optim; Lion, which
  PyTorch does not have, by Algorithm 2 of arXiv 2302.06675 written out.
- dropout: a model whose loss is the sum of squares of a Dropout's output.

Run with Debian 12's Python (python3-torch 1.13, python3-onnx); the tests only read the result.
"""
import base64
import json
import os

import torch
from onnx import TensorProto, helper, numpy_helper

STEPS = 3
node = helper.make_node


def pack(tensor):
    array = tensor.detach().numpy()
    return {"type": str(array.dtype), "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}


def model(name, nodes, inputs, parameters, output):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, name, [value(k, list(v)) for k, v in inputs.items()], [value(*output)],
                              [numpy_helper.from_array(v.detach().numpy(), k) for k, v in parameters.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return base64.b64encode(made.SerializeToString()).decode()


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr, weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                change = (0.9 * m + 0.1 * p.grad).sign() + group["decay"] * p
                p -= group["lr"] * change
                m.copy_(0.99 * m + 0.01 * p.grad)


torch.manual_seed(7)
x, target = torch.randn(4, 5), torch.randn(4, 3)
start = {"w1": torch.randn(5, 6) * 0.5, "b1": torch.randn(6) * 0.1, "w2": torch.randn(6, 3) * 0.5}
perceptron = model("perceptron", [node("Gemm", ["x", "w1", "b1"], ["h"]), node("Relu", ["h"], ["r"]),
                                  node("MatMul", ["r", "w2"], ["y"])], {"x": x.shape}, start, ("y", [4, 3]))
SGD = torch.optim.SGD
cases = [
    ("sgd", {}, lambda p: SGD(p, 0.05)),
    ("sgd", {"weight_decay": 0.1}, lambda p: SGD(p, 0.05, weight_decay=0.1)),
    ("sgd", {"clip_norm": 0.5}, lambda p: SGD(p, 0.05)),
    ("sgd", {"clip_norm": 1000.0}, lambda p: SGD(p, 0.05)),
    ("momentum", {"weight_decay": 0.1}, lambda p: SGD(p, 0.05, momentum=0.9, weight_decay=0.1)),
    ("nesterov", {}, lambda p: SGD(p, 0.05, momentum=0.9, nesterov=True)),
    ("adam", {"weight_decay": 0.1}, lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.1)),
    ("adam", {"clip_norm": 0.5}, lambda p: torch.optim.Adam(p, 0.05)),
    ("adamw", {}, lambda p: torch.optim.AdamW(p, 0.05)),
    ("adamw", {"weight_decay": 0.2}, lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.2)),
    ("adagrad", {}, lambda p: torch.optim.Adagrad(p, 0.05)),
    ("rmsprop", {}, lambda p: torch.optim.RMSprop(p, 0.05)),
    ("lion", {}, lambda p: Lion(p, 0.05)),
    ("lion", {"weight_decay": 0.1}, lambda p: Lion(p, 0.05, weight_decay=0.1)),
]
steps = []
for optimizer, options, make in cases:
    p = {k: v.clone().requires_grad_(True) for k, v in start.items()}
    stepper = make(list(p.values()))
    losses = []
    for _ in range(STEPS):
        stepper.zero_grad()
        loss = torch.nn.functional.mse_loss(torch.relu(x @ p["w1"] + p["b1"]) @ p["w2"], target)
        loss.backward()
        losses.append(loss.item())
        if "clip_norm" in options:
            torch.nn.utils.clip_grad_norm_(p.values(), options["clip_norm"])
        stepper.step()
    steps.append({"optimizer": optimizer, "options": options, "learning_rate": 0.05, "losses": losses,
                  "parameters": {k: pack(v) for k, v in p.items()}})

scale = torch.randn(64, 64)
ratio = numpy_helper.from_array(torch.tensor(0.3).numpy(), "ratio")
train = numpy_helper.from_array(torch.tensor(True).numpy(), "train")
dropout = model("dropout", [node("Constant", [], ["ratio"], value=ratio), node("Constant", [], ["train"], value=train),
                            node("Mul", ["x", "scale"], ["scaled"]),
                            node("Dropout", ["scaled", "ratio", "train"], ["dropped", "mask"]),
                            node("Mul", ["dropped", "dropped"], ["y"])], {"x": (64, 64)}, {"scale": scale},
                ("y", [64, 64]))

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "options.json"), "w") as out:
    json.dump({"perceptron": perceptron, "x": pack(x), "target": pack(target),
               "start": {k: pack(v) for k, v in start.items()}, "steps": steps, "dropout": dropout}, out, indent=1)
    out.write("\n")
