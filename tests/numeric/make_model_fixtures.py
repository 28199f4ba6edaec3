#!/usr/bin/python3
"""Writes models/*.onnx (structures without weights) and models.json: whole networks with what PyTorch computes for them.

Run with Debian 12's Python (python3-torch 1.13, python3-torchvision, python3-onnx); models.test.mjs only reads the
result. Weights, inputs and labels come from a counter-based generator that is written here and in generator.mjs, so
neither has to be stored. PyTorch computes in float64 from the same float32 values. Of every gradient and of every
parameter's change by an optimizer step the fixtures keep the norm and two random projections.
"""
import io
import json
import math
import os
import warnings

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
STEP = 5  # of the optimizer step compared: Adam corrects by it
OPTIMIZERS = {
    "sgd": (0.05, lambda p, rate: torch.optim.SGD(p, rate)),
    "momentum": (0.05, lambda p, rate: torch.optim.SGD(p, rate, momentum=0.9)),
    "adam": (0.01, lambda p, rate: torch.optim.Adam(p, rate)),
    "adamw": (0.01, lambda p, rate: torch.optim.AdamW(p, rate)),
}


# --- The generator: keep in step with generator.mjs -------------------------------------------------------------------

def seed_of(name):
    """FNV-1a of the name's bytes."""
    seed = 0x811C9DC5
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x01000193) & 0xFFFFFFFF
    return seed


def bits(seed, count):
    """splitmix32 by position: uint32 numbers that depend on seed and index only."""
    mask = np.uint64(0xFFFFFFFF)
    i = np.arange(1, count + 1, dtype=np.uint64)
    z = (np.uint64(seed * 0x85EBCA6B & 0xFFFFFFFF) + ((i * np.uint64(0x9E3779B9)) & mask)) & mask
    z = ((z ^ (z >> np.uint64(16))) * np.uint64(0x21F0AAAD)) & mask
    z = ((z ^ (z >> np.uint64(15))) * np.uint64(0x735A2D97)) & mask
    return z ^ (z >> np.uint64(15))


def uniform(seed, count):
    return bits(seed, count).astype(np.float64) / 2.0**31 - 1


def floats(name, shape):
    """In [-1, 1), rounded to float32."""
    return uniform(seed_of(name), math.prod(shape)).astype(np.float32).reshape(shape)


def integers(name, shape, below):
    return (bits(seed_of(name), math.prod(shape)) % np.uint64(below)).astype(np.int64).reshape(shape)


def weight(name, shape, shift=0.0):
    """Matrices and kernels with unit gain, scales around 1, biases around `shift`."""
    u = floats(name, shape).astype(np.float64)
    if len(shape) >= 2:
        value = u * math.sqrt(3 / (math.prod(shape) / shape[0]))
    elif name.endswith("weight"):
        value = 1 + 0.1 * u
    else:
        value = shift + 0.1 * u
    return value.astype(np.float32)


def state(name, shape, kind):
    """Optimizer state of a parameter as after some steps. From zeros Adam's first step is the gradient's sign, and
    momentum's the gradient itself: neither would say much."""
    u = floats(f"{name}/{kind}", shape).astype(np.float64)
    return (1e-4 * (1 + 0.5 * u) if kind == "adam_v" else 1e-2 * u).astype(np.float32)


# --- Networks ---------------------------------------------------------------------------------------------------------

class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.f1, self.f2, self.f3 = nn.Linear(256, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.c1(x)), 2)
        x = F.max_pool2d(torch.relu(self.c2(x)), 2)
        return self.f3(torch.relu(self.f2(torch.relu(self.f1(torch.flatten(x, 1))))))


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = Block(3, 8), Block(8, 16), Block(16, 32)
        self.up2, self.up1, self.head = Block(48, 16), Block(24, 8), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.avg_pool2d(b, 2))
        c = F.interpolate(c, scale_factor=2.0, mode="bilinear", align_corners=False)
        b = self.up2(torch.cat([b, c], 1))
        b = F.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.head(self.up1(torch.cat([a, b], 1)))


class LstmModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(40, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 40)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class GptLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(width, 2)
        q, k, v = (a.view(n, t, self.heads, width // self.heads).transpose(1, 2) for a in (q, k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        scores = scores.masked_fill(~causal, float("-inf"))
        x = x + self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(n, t, width))
        h = self.up(self.ln_2(x))
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        return x + self.down(h)


class Gpt(nn.Module):  # the output layer is the token embedding
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 32), nn.Embedding(12, 32)
        self.layers, self.ln_f = nn.Sequential(GptLayer(32, 4), GptLayer(32, 4)), nn.LayerNorm(32)

    def forward(self, x):
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1]).unsqueeze(0))
        return F.linear(self.ln_f(self.layers(h)), self.wte.weight)


def vit():
    return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)


MODELS = [
    # name, module, opset, input (shape, None or vocabulary), label shape, classes, class axis, where biases lie
    ("lenet5", LeNet5, 13, ([16, 1, 28, 28], None), [16], 10, 1),
    ("resnet18", lambda: torchvision.models.resnet18(num_classes=10), 14, ([8, 3, 32, 32], None), [8], 10, 1),
    ("mobilenet_v2", lambda: torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0), 15,
     # Biases of 2: of 53 layers of random weights, fewer inputs lie near a kink of ReLU6.
     ([4, 3, 64, 64], None), [4], 10, 1, 2.0),
    ("unet", UNet, 16, ([2, 3, 16, 16], None), [2, 16, 16], 4, 1),
    ("lstm", LstmModel, 14, ([3, 7], 40), [3, 7], 40, 2),
    ("vit", vit, 17, ([3, 3, 32, 32], None), [3], 10, 1),
    ("gpt", Gpt, 17, ([2, 12], 50), [2, 12], 50, 2),
]


def export(module, example, opset, path):
    """The model as torch.onnx writes it for training, parameters without their values."""
    buffer = io.BytesIO()
    torch.onnx.export(module, example, buffer, opset_version=opset, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["x"], output_names=["y"])
    model = onnx.load_from_string(buffer.getvalue())
    stored = {k for k, _ in module.state_dict().items()}
    for tensor in model.graph.initializer:
        if tensor.name in stored and len(tensor.dims) > 0:
            for field in ("raw_data", "float_data", "int64_data"):
                tensor.ClearField(field)
    for node in model.graph.node:
        node.ClearField("doc_string")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())
    return os.path.getsize(path)


def digest(name, tensor):
    """Norm and two projections on generated directions, of float64."""
    flat = tensor.detach().numpy().astype(np.float64).ravel()
    return [float(np.linalg.norm(flat))] + [
        float(flat @ uniform(seed_of(f"{name}/{k}"), flat.size)) for k in (1, 2)]


def fill(module, shift):
    """Generated values, then float64."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(torch.from_numpy(weight(name, list(p.shape), shift)))
    return module.double()


def loss_of(module, x, label, class_axis):
    return F.cross_entropy(module(x).movedim(class_axis, 1), label)


def gradients(make, shift, x, label, class_axis, dtype):
    torch.manual_seed(0)
    module = fill(make(), shift).train().to(dtype)
    loss = loss_of(module, x.to(dtype) if x.is_floating_point() else x, label, class_axis)
    loss.backward()
    typical = max(p.grad.norm().item() / math.sqrt(p.numel()) for p in module.parameters())
    return {k: digest(k, p.grad.double()) + [typical * math.sqrt(p.numel())] for k, p in module.named_parameters()}


def smooth_input(make, shift, inputs, label, class_axis):
    """An input at which float32 takes the same side of every kink as float64, by PyTorch's own computation: one ReLU in
    half a million that does not can change a deep network's gradient by a percent."""
    shape, vocabulary = inputs
    tried = []
    for i in range(8):
        name = f"x{i}"
        x = torch.from_numpy(integers(name, shape, vocabulary) if vocabulary else floats(name, shape))
        exact, rounded = (gradients(make, shift, x, label, class_axis, t) for t in (torch.float64, torch.float32))
        error = max(abs(p - q) / max(exact[k][0], 1e-3 * exact[k][3]) for k in exact for p, q in zip(exact[k][:3], rounded[k]))
        tried.append((error, name, x))
        if error < 1e-4:
            break
    print("float32 differs from float64 by", [f"{t[0]:.0e}" for t in tried])
    return min(tried, key=lambda t: t[0])[1:]


def fixture(name, make, opset, inputs, label_shape, classes, class_axis, shift=0.0):
    shape, vocabulary = inputs
    torch.manual_seed(0)
    module = make().train()
    label = torch.from_numpy(integers("label", label_shape, classes))
    seed, x = smooth_input(make, shift, inputs, label, class_axis)
    size = export(module, x, opset, os.path.join(HERE, "models", f"{name}.onnx"))
    x = x if vocabulary else x.double()
    case = {"name": name, "bias": shift, "input": {"seed": seed, "shape": shape, "below": vocabulary},
            "label": {"seed": "label", "shape": label_shape, "below": classes}, "steps": {}}
    for optimizer, (rate, maker) in OPTIMIZERS.items():
        torch.manual_seed(0)
        module = fill(make(), shift).train()
        before = {k: p.detach().clone() for k, p in module.named_parameters()}
        step = maker(module.parameters(), rate)
        loss = loss_of(module, x, label, class_axis)
        loss.backward()
        if optimizer == "sgd":
            case["loss"] = loss.item()
            case["gradients"] = {k: digest(k, p.grad) for k, p in module.named_parameters()}
        for k, p in module.named_parameters():
            kept = lambda kind: torch.from_numpy(state(k, list(p.shape), kind)).double()
            if optimizer == "momentum":
                step.state[p]["momentum_buffer"] = kept("momentum")
            elif optimizer != "sgd":
                step.state[p].update(step=torch.tensor(STEP - 1.0), exp_avg=kept("adam_m"), exp_avg_sq=kept("adam_v"))
        step.step()
        case["steps"][optimizer] = {
            "learning_rate": rate,
            "changes": {k: digest(k, p.detach() - before[k]) for k, p in module.named_parameters()}}
    print(f"{name}: {size} bytes, input {seed}, {len(case['gradients'])} parameters, loss {case['loss']:.4f}")
    return case


def task():
    """Ten classes of 28x28 images, each a generated pattern with noise: 16 images, learned for twenty Adam steps."""
    label = integers("task/label", [16], 10)
    patterns = floats("task/pattern", [10, 1, 28, 28]).astype(np.float64)
    x = (patterns[label] + 0.5 * floats("task/noise", [16, 1, 28, 28]).astype(np.float64)).astype(np.float32)
    rate = 0.002
    module = fill(LeNet5(), 0.0).train()
    step = torch.optim.Adam(module.parameters(), rate)
    losses = []
    for _ in range(20):
        step.zero_grad()
        loss = loss_of(module, torch.from_numpy(x).double(), torch.from_numpy(label), 1)
        loss.backward()
        step.step()
        losses.append(loss.item())
    print("task:", [round(v, 3) for v in losses])
    return {"learning_rate": rate, "losses": losses}


def rounded(value):
    """Nine digits: what float32 can be compared with."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


if __name__ == "__main__":
    os.makedirs(os.path.join(HERE, "models"), exist_ok=True)
    cases = [fixture(*model) for model in MODELS]
    with open(os.path.join(HERE, "models.json"), "w") as out:
        out.write("{\"task\": " + json.dumps(rounded(task())) + ",\n\"models\": [\n")
        out.write(",\n".join(json.dumps(rounded(case), separators=(",", ":")) for case in cases) + "\n]}\n")
    print(os.path.getsize(os.path.join(HERE, "models.json")), "bytes")
