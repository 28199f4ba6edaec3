#!/usr/bin/python3
"""Makes the ONNX files of this folder and of tests/models: the structure of well-known networks, without their weights.

    /usr/bin/python3 examples/models/export.py [NAME...]

Needs Debian 12's python3-torch (1.13), python3-torchvision (0.14) and python3-onnx; downloads nothing (weights are
random and dropped again). Every model is exported in training mode without constant folding, so that batch
normalisations and dropouts are still there, with a dynamic first axis "batch" (and "sequence" for gpt2_small); nodes and
parameters keep the names that PyTorch gives them. An initializer without payload keeps name, type and dimensions: all
that an analysis reads.
"""
import io
import math
import os
import sys

import onnx
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

OPSET = 17  # the newest that PyTorch 1.13 writes; has LayerNormalization as one operator
SMALL = 1024  # bytes: constants up to here keep their values (shapes, bounds, epsilons)


class LeNet5(nn.Sequential):
    """LeCun et al. 1998 on 28x28 digits, with ReLU and maximum pooling as taught today: 61,706 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.relu1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.relu2 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.relu3 = nn.ReLU()
        self.fc2 = nn.Linear(120, 84)
        self.relu4 = nn.ReLU()
        self.fc3 = nn.Linear(84, 10)


def resnet18_cifar():
    """ResNet-18 for 32x32 images: a 3x3 stem of stride 1 without pooling, 10 classes."""
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def swin_t():
    """Without stochastic depth: PyTorch's exporter cannot write its random numbers."""
    model = torchvision.models.swin_t()
    for module in model.modules():
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return model


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.width, self.heads, self.per_head = width, heads, width // heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, sequence, _ = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        q, k, v = (t.view(batch, sequence, self.heads, self.per_head).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * self.per_head**-0.5
        position = torch.arange(sequence, device=x.device)
        future = position.unsqueeze(1) < position.unsqueeze(0)
        weights = self.attn_dropout(F.softmax(scores.masked_fill(future, float("-inf")), dim=-1))
        y = (weights @ v).transpose(1, 2).reshape(batch, sequence, self.width)
        return self.resid_dropout(self.c_proj(y))


class Mlp(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, dropout)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    """GPT-2 small (Radford et al. 2019): the output layer is the token embedding, one parameter used twice."""

    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, context=1024, dropout=0.1):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, input_ids):
        position = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.drop(self.wte(input_ids) + self.wpe(position))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def image(channels, size):
    return torch.zeros(2, channels, size, size)


# name -> model, example input, names of input and output with dynamic axes of either; further: opset (default OPSET)
IMAGES = ("input", "output", {0: "batch"}, {0: "batch"})
TOKENS = ("input_ids", "logits", {0: "batch", 1: "sequence"}, {0: "batch", 1: "sequence"})
MODELS = {
    "lenet5": (LeNet5, lambda: image(1, 28), IMAGES),
    "resnet18_cifar": (resnet18_cifar, lambda: image(3, 32), IMAGES),
    "resnet18": (torchvision.models.resnet18, lambda: image(3, 224), IMAGES),
    "resnet50": (torchvision.models.resnet50, lambda: image(3, 224), IMAGES),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, lambda: image(3, 224), IMAGES),
    "vit_b_16": (torchvision.models.vit_b_16, lambda: image(3, 224), IMAGES),
    "gpt2_small": (Gpt2, lambda: torch.zeros(2, 16, dtype=torch.int64), TOKENS),
}
# For tests alone, in tests/models. Before opset 17 LayerNormalization is decomposed.
TEST_MODELS = {
    "resnet50_10classes": (lambda: torchvision.models.resnet50(num_classes=10), lambda: image(3, 224), IMAGES),
    "vgg16_bn": (torchvision.models.vgg16_bn, lambda: image(3, 224), IMAGES),
    "densenet121": (torchvision.models.densenet121, lambda: image(3, 224), IMAGES),
    "vit_b_16_opset14": (torchvision.models.vit_b_16, lambda: image(3, 224), IMAGES, 14),
    "gpt2_6_layers_opset14": (lambda: Gpt2(layers=6), lambda: torch.zeros(2, 16, dtype=torch.int64), TOKENS, 14),
}
# For benchmarks alone, in build/models: larger than the tree takes.
BENCH_MODELS = {
    "swin_t": (swin_t, lambda: image(3, 224), IMAGES),
}
ALL = {**MODELS, **TEST_MODELS, **BENCH_MODELS}


def strip(tensor):
    """Keeps name, dimensions and type of a TensorProto."""
    bare = onnx.TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
    tensor.CopyFrom(bare)


def size_in_bytes(tensor):
    return math.prod(tensor.dims) * onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[tensor.data_type].itemsize


def export(name, folder):
    build, example, (input_name, output_name, input_axes, output_axes), *opset = ALL[name]
    torch.manual_seed(0)
    model = build().train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.num_batches_tracked = None  # counts steps; would leave an addition per layer that nothing reads
    buffer = io.BytesIO()
    torch.onnx.export(model, example(), buffer, opset_version=opset[0] if opset else OPSET,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=[input_name], output_names=[output_name],
                      dynamic_axes={input_name: input_axes, output_name: output_axes})
    proto = onnx.load_model_from_string(buffer.getvalue())
    proto.graph.name = name
    proto.doc_string = proto.graph.doc_string = ""
    del proto.graph.value_info[:]
    weights = model.state_dict()
    for tensor in proto.graph.initializer:
        tensor.doc_string = ""
        if tensor.name in weights or size_in_bytes(tensor) > SMALL:
            strip(tensor)
    for node in proto.graph.node:
        node.doc_string = ""
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and size_in_bytes(attribute.t) > SMALL:
                sys.exit(f"{name}: node {node.name} holds a constant of {size_in_bytes(attribute.t)} bytes")
    exported = {t.name: math.prod(t.dims) for t in proto.graph.initializer}
    parameters = {key: value.numel() for key, value in model.named_parameters()}
    if any(exported.get(key) != count for key, count in parameters.items()):
        sys.exit(f"{name}: a parameter lost its name or its dimensions in the export")
    data = proto.SerializeToString(deterministic=True)
    with open(os.path.join(folder, name + ".onnx"), "wb") as out:
        out.write(data)
    print(f"{name}: {sum(parameters.values()):,} parameters, {len(proto.graph.node)} nodes, {len(data):,} bytes")


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ALL]
    if unknown:
        sys.exit(f"no model is called {', '.join(unknown)}; there are {', '.join(ALL)}")
    here = os.path.dirname(os.path.abspath(__file__))
    for each in sys.argv[1:] or [*MODELS, *TEST_MODELS]:
        place = "." if each in MODELS else "../../tests/models" if each in TEST_MODELS else "../../build/models"
        folder = os.path.normpath(os.path.join(here, place))
        os.makedirs(folder, exist_ok=True)
        export(each, folder)
