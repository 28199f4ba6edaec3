#!/usr/bin/python3
"""Writes fixtures.json: small models with the gradients and optimizer steps that PyTorch computes for them.

Run with Debian 12's Python (python3-torch 1.13, python3-onnx); the tests only read the result. Everything is seeded, so
a second run writes the same bytes. Single operators are written with the onnx package next to the PyTorch expression
that defines what they mean; networks are exported by torch.onnx in training mode.

Every single-operator model adds a parameter `p` of the input's shape to its input, so that the gradient of `p` is the
operator's whole input gradient.
"""
import base64
import io
import json
import os
import warnings

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")
LEARNING_RATE = {"sgd": 0.05, "momentum": 0.05, "adam": 0.01}
STEPS = 2  # momentum's and Adam's states matter from the second step on

cases = []


def pack(value):
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    array = np.ascontiguousarray(array).reshape(array.shape)
    assert array.dtype in (np.float32, np.int64), array.dtype
    return {"type": str(array.dtype), "shape": list(array.shape),
            "data": base64.b64encode(array.tobytes()).decode()}


def loss_of(kind, y, label, class_axis):
    if kind == "mse":
        return F.mse_loss(y, label)
    if kind == "sum":
        return y.sum()
    return F.cross_entropy(y.movedim(class_axis, 1), label)


def add_case(name, model, x, forward, parameters, buffers=None, loss="mse", class_axis=1, classes=None, optimizers=(),
             frozen=False, label=None, compare_loss=True, compare_not=(),
             mask_gradients=False, run_opset=None):
    """forward(x) -> y reads `parameters` and `buffers` (name -> tensor). mask_gradients: PyTorch's gradients hold for
    the elements that the model's dropout keeps, the others' are zero. run_opset: what the exported graph is declared
    as, for operators that ONNX Runtime has no kernel of at opset 22."""
    buffers = buffers or {}
    trained = {k: v for k, v in parameters.items() if v.requires_grad}
    case = {"name": name, "model": base64.b64encode(model).decode(), "loss": loss, "frozen": frozen,
            "compare_loss": compare_loss, "mask_gradients": mask_gradients, **({"run_opset": run_opset} if run_opset else {}),
            "inputs": {"x": pack(x)},
            "parameters": {k: pack(v) for k, v in parameters.items()},
            "buffers": {k: pack(v) for k, v in buffers.items()}}
    start = {k: v.detach().clone() for k, v in parameters.items()}
    start_buffers = {k: v.detach().clone() for k, v in buffers.items()}
    y = forward(x)
    if label is None and loss == "mse":
        label = torch.randn(y.shape)
    if label is None and loss == "cross_entropy":
        shape = list(y.shape)
        label = torch.randint(0, shape.pop(class_axis), shape)
    if label is not None:
        case["label"] = pack(label)
    value = loss_of(loss, y, label, class_axis)
    value.backward()
    case["expected"] = {"loss": value.item(), "gradients": {k: pack(v.grad) for k, v in trained.items() if k not in compare_not},
                        "buffers": {k: pack(v) for k, v in buffers.items()}, "optimizers": {}}
    for optimizer in optimizers:
        with torch.no_grad():
            for k, v in parameters.items():
                v.copy_(start[k])
            for k, v in buffers.items():
                v.copy_(start_buffers[k])
        rate = LEARNING_RATE[optimizer]
        step = {"sgd": lambda p: torch.optim.SGD(p, rate), "momentum": lambda p: torch.optim.SGD(p, rate, momentum=0.9),
                "adam": lambda p: torch.optim.Adam(p, rate)}[optimizer](list(trained.values()))
        for _ in range(STEPS):
            step.zero_grad()
            loss_of(loss, forward(x), label, class_axis).backward()
            step.step()
        case["expected"]["optimizers"][optimizer] = {
            "learning_rate": rate, "steps": STEPS, "parameters": {k: pack(v) for k, v in trained.items()}}
    cases.append(case)


NEWEST_CHECKED = 17  # what Debian's onnx package knows; newer models are checked by the importer alone


def operator(name, nodes, x_shape, reference, parameters=None, constants=None, opset=16, x=None, **options):
    """nodes: from "xp" (= x + p) and parameters to "y"; reference(xp, parameters) -> y in PyTorch."""
    torch.manual_seed(len(cases))
    x = torch.randn(x_shape) if x is None else x
    tensors = {"p": torch.randn(x_shape) * 0.5}
    for key, shape in (parameters or {}).items():
        tensors[key] = torch.randn(shape) if isinstance(shape, (list, tuple)) else shape
    for value in tensors.values():
        value.requires_grad_(True)
    initializers = [numpy_helper.from_array(v.detach().numpy(), k) for k, v in tensors.items()]
    for key, value in (constants or {}).items():
        initializers.append(numpy_helper.from_array(np.asarray(value), key))
    forward = lambda data: reference(data + tensors["p"], tensors)
    y = forward(x)
    graph = helper.make_graph([helper.make_node("Add", ["x", "p"], ["xp"])] + nodes, name,
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x.shape))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(y.shape))], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    if opset <= NEWEST_CHECKED:
        onnx.checker.check_model(model)
    add_case(name, model.SerializeToString(), x, forward, tensors, **options)


def network(name, module, x, opset, loss="cross_entropy", **options):
    module.train()
    parameters = dict(module.named_parameters())
    buffers = {k: v for k, v in module.named_buffers() if v.is_floating_point()}
    saved = {k: v.clone() for k, v in module.named_buffers()}
    out = io.BytesIO()
    torch.onnx.export(module, x, out, opset_version=opset, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["x"], output_names=["y"])
    with torch.no_grad():  # exporting runs the module, which moves the running statistics
        for k, v in module.named_buffers():
            v.copy_(saved[k])
    add_case(name, out.getvalue(), x, module, parameters, buffers, loss=loss, **options)


node = helper.make_node


# --- Convolutions -----------------------------------------------------------------------------------------------------

def conv(name, x_shape, w_shape, stride=1, pad=0, dilation=1, group=1, bias=True):
    axes = len(x_shape) - 2
    spread = lambda v: list(v) if isinstance(v, (list, tuple)) else [v] * axes
    pads = spread(pad) * 2 if not (isinstance(pad, list) and len(pad) == 2 * axes) else pad
    function = [F.conv1d, F.conv2d, F.conv3d][axes - 1]
    order = [v for i in reversed(range(axes)) for v in (pads[i], pads[axes + i])]  # F.pad: last axis first
    reference = lambda x, t: function(F.pad(x, order), t["w"], t.get("b"), spread(stride), 0, spread(dilation), group)
    inputs = ["xp", "w"] + (["b"] if bias else [])
    operator(name, [node("Conv", inputs, ["y"], strides=spread(stride), pads=pads, dilations=spread(dilation),
                         group=group)], x_shape, reference,
             {"w": w_shape, **({"b": [w_shape[0]]} if bias else {})})


def same(size, kernel, stride, dilation, upper):
    total = max(0, (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1 - size)
    begin = total // 2 if upper else total - total // 2
    return begin, total - begin


conv("conv_plain", [2, 3, 6, 5], [4, 3, 3, 3], pad=1)
conv("conv_no_bias", [2, 3, 5, 5], [4, 3, 3, 3], bias=False)
conv("conv_stride_remainder", [2, 3, 8, 7], [4, 3, 3, 3], stride=2, pad=1)
conv("conv_stride_no_pad_remainder", [2, 2, 8, 9], [3, 2, 3, 2], stride=3)
conv("conv_pointwise_stride", [2, 3, 6, 7], [4, 3, 1, 1], stride=2, bias=False)
conv("conv_dilated", [2, 2, 9, 9], [3, 2, 3, 3], pad=2, dilation=2)
conv("conv_dilated_strided", [2, 2, 10, 11], [3, 2, 3, 3], stride=2, pad=1, dilation=[2, 3])
conv("conv_grouped", [2, 4, 6, 6], [6, 2, 3, 3], stride=2, pad=1, group=2)
conv("conv_depthwise", [2, 4, 6, 6], [4, 1, 3, 3], pad=1, group=4, bias=False)
conv("conv_depthwise_multiplier", [2, 3, 7, 6], [6, 1, 3, 3], stride=2, pad=1, dilation=2, group=3)
conv("conv_asymmetric_pads", [2, 2, 6, 6], [3, 2, 3, 3], stride=2, pad=[0, 1, 2, 0])
conv("conv_rectangular_kernel", [1, 2, 5, 7], [3, 2, 1, 4], stride=[1, 2], pad=[0, 2])
conv("conv_batch_one", [1, 2, 5, 5], [3, 2, 3, 3], pad=1)
conv("conv_1d", [2, 3, 11], [4, 3, 4], stride=3, pad=2)
conv("conv_3d", [1, 2, 4, 5, 5], [2, 2, 2, 3, 3], stride=[1, 2, 2], pad=1)
for mode in ("SAME_UPPER", "SAME_LOWER"):
    # Not dilated: ONNX Runtime runs no dilated convolution with auto_pad (training_parts_test.cc has its pads).
    for kernel, stride, dilation in ((3, 2, 1), (2, 1, 1), (4, 3, 1), (1, 2, 1)):
        h, w = (same(s, kernel, stride, dilation, mode == "SAME_UPPER") for s in (6, 7))
        operator(f"conv_{mode.lower()}_k{kernel}_s{stride}_d{dilation}",
                 [node("Conv", ["xp", "w"], ["y"], auto_pad=mode, strides=[stride] * 2, dilations=[dilation] * 2)],
                 [1, 2, 6, 7],
                 lambda x, t: F.conv2d(F.pad(x, [*w, *h]), t["w"], None, stride, 0, dilation),
                 {"w": [2, 2, kernel, kernel]})
operator("conv_valid", [node("Conv", ["xp", "w"], ["y"], auto_pad="VALID", strides=[2, 2])], [1, 2, 6, 7],
         lambda x, t: F.conv2d(x, t["w"], None, 2), {"w": [3, 2, 3, 3]})


def conv_transpose(name, x_shape, w_shape, stride=1, pad=0, dilation=1, group=1, extra=0, bias=True, after=None,
                   **options):
    axes = len(x_shape) - 2
    spread = lambda v: list(v) if isinstance(v, (list, tuple)) else [v] * axes
    function = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][axes - 1]
    reference = lambda x, t: function(x, t["w"], t.get("b"), spread(stride), spread(pad), spread(extra), group,
                                      spread(dilation))
    nodes = [node("ConvTranspose", ["xp", "w"] + (["b"] if bias else []), ["y" if after is None else "c"],
                  strides=spread(stride), pads=spread(pad) * 2, dilations=spread(dilation), group=group,
                  output_padding=spread(extra))]
    parameters = {"w": w_shape, **({"b": [w_shape[1] * group]} if bias else {})}
    if after is not None:
        nodes.append(node("Mul", ["c", "after"], ["y"]))
        whole = lambda x, t: reference(x, t) * t["after"]
        operator(name, nodes, x_shape, whole, {**parameters, "after": after}, **options)
    else:
        operator(name, nodes, x_shape, reference, parameters, **options)


conv_transpose("conv_transpose_plain", [2, 3, 4, 4], [3, 2, 3, 3])
conv_transpose("conv_transpose_strided", [2, 3, 4, 3], [3, 2, 3, 3], stride=2, pad=1, bias=False)
conv_transpose("conv_transpose_output_padding", [2, 3, 4, 3], [3, 2, 3, 3], stride=2, pad=1, extra=1)
conv_transpose("conv_transpose_output_padding_no_pad", [1, 2, 3, 3], [2, 2, 2, 2], stride=3, extra=[2, 1])
# ONNX Runtime's ConvTranspose is wrong where output_padding reaches a whole stride beyond the pad (so are its output and
# the gradient of what multiplies it), but the gradients of a weighted sum do not depend on it.
conv_transpose("conv_transpose_extra_over_stride", [1, 2, 4, 4], [2, 2, 3, 3], stride=2, dilation=4, pad=[1, 2],
               extra=[3, 2], after=torch.randn(1, 2, 16, 13, generator=torch.Generator().manual_seed(0)),
               loss="sum", compare_loss=False, compare_not=["after"])
conv_transpose("conv_transpose_grouped", [2, 4, 4, 4], [4, 3, 3, 3], stride=2, pad=1, group=2)
conv_transpose("conv_transpose_dilated", [1, 2, 4, 4], [2, 2, 3, 3], stride=2, dilation=2, pad=2)
conv_transpose("conv_transpose_1d", [2, 3, 5], [3, 2, 4], stride=2, pad=1)


def cropped_transpose(x, t, head, out):
    full = F.conv_transpose2d(x, t["w"], None, 2)
    return full[:, :, head[0]:head[0] + out[0], head[1]:head[1] + out[1]]


# Full output 9 x 9; pads make up the difference, the odd one goes to the end for SAME_UPPER only.
operator("conv_transpose_output_shape",
         [node("ConvTranspose", ["xp", "w"], ["y"], strides=[2, 2], output_shape=[8, 6])], [1, 2, 4, 4],
         lambda x, t: cropped_transpose(x, t, (1, 2), (8, 6)), {"w": [2, 2, 3, 3]})
operator("conv_transpose_same_upper",
         [node("ConvTranspose", ["xp", "w"], ["y"], strides=[2, 2], auto_pad="SAME_UPPER")], [1, 2, 4, 4],
         lambda x, t: cropped_transpose(x, t, (0, 0), (8, 8)), {"w": [2, 2, 3, 3]})
operator("conv_transpose_same_lower",
         [node("ConvTranspose", ["xp", "w"], ["y"], strides=[2, 2], auto_pad="SAME_LOWER")], [1, 2, 4, 4],
         lambda x, t: cropped_transpose(x, t, (1, 1), (8, 8)), {"w": [2, 2, 3, 3]})

# --- Pooling ----------------------------------------------------------------------------------------------------------

operator("max_pool", [node("MaxPool", ["xp"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [2, 3, 6, 5],
         lambda x, t: F.max_pool2d(x, 2, 2))
operator("max_pool_overlapping", [node("MaxPool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)],
         [2, 3, 7, 6], lambda x, t: F.max_pool2d(x, 3, 2, 1))
operator("max_pool_ceil_dilated",
         [node("MaxPool", ["xp"], ["y"], kernel_shape=[2, 2], strides=[2, 2], dilations=[2, 2], ceil_mode=1)],
         [1, 2, 8, 7], lambda x, t: F.max_pool2d(x, 2, 2, 0, 2, True))
operator("max_pool_same_upper",
         [node("MaxPool", ["xp"], ["y"], kernel_shape=[2, 2], strides=[1, 2], auto_pad="SAME_UPPER")], [1, 2, 4, 5],
         lambda x, t: F.max_pool2d(F.pad(x, [0, 1, 0, 1], value=-1e30), 2, (1, 2)))
operator("max_pool_1d", [node("MaxPool", ["xp"], ["y"], kernel_shape=[3], strides=[2])], [2, 3, 9],
         lambda x, t: F.max_pool1d(x, 3, 2))
operator("max_pool_3d", [node("MaxPool", ["xp"], ["y"], kernel_shape=[2, 2, 2], strides=[1, 2, 2])], [1, 2, 3, 4, 5],
         lambda x, t: F.max_pool3d(x, 2, (1, 2, 2)))


def average(name, x_shape, kernel, stride, pad=0, ceil=False, include=False, dims=2):
    function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][dims - 1]
    operator(name, [node("AveragePool", ["xp"], ["y"], kernel_shape=[kernel] * dims, strides=[stride] * dims,
                         pads=[pad] * 2 * dims, ceil_mode=int(ceil), count_include_pad=int(include))], x_shape,
             lambda x, t: function(x, kernel, stride, pad, ceil, include))


average("average_pool", [2, 3, 6, 5], 2, 2)
average("average_pool_overlapping", [2, 2, 7, 7], 3, 2)
average("average_pool_pads", [2, 2, 6, 7], 3, 2, 1)
average("average_pool_include_pad", [2, 2, 6, 7], 3, 2, 1, include=True)
average("average_pool_ceil", [2, 2, 6, 8], 3, 2, ceil=True)
average("average_pool_ceil_pads", [2, 2, 6, 7], 3, 2, 1, ceil=True)
average("average_pool_ceil_include_pad", [2, 2, 6, 7], 3, 2, 1, ceil=True, include=True)
average("average_pool_1d", [2, 2, 9], 3, 2, 1, dims=1)
average("average_pool_3d", [1, 2, 4, 5, 4], 2, 2, dims=3)


def counted_average(x, pads, include, dilation=1):  # pads: top, left, bottom, right; kernel 3, stride 2
    t, l, b, r = pads
    ones = torch.ones_like(x) if not include else torch.ones(*x.shape[:2], x.shape[2] + t + b, x.shape[3] + l + r)
    padded_ones = F.pad(ones, [l, r, t, b]) if not include else ones
    kernel = torch.ones(x.shape[1], 1, 3, 3)
    total = F.conv2d(F.pad(x, [l, r, t, b]), kernel, None, 2, 0, dilation, x.shape[1])
    return total / F.conv2d(padded_ones, kernel, None, 2, 0, dilation, x.shape[1])


for include in (0, 1):
    operator(f"average_pool_asymmetric_{'include' if include else 'exclude'}",
             [node("AveragePool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 2, 0],
                   count_include_pad=include)], [1, 2, 6, 6], lambda x, t: counted_average(x, (0, 1, 2, 0), include))
    operator(f"average_pool_dilated_{'include' if include else 'exclude'}",
             [node("AveragePool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[2, 1, 0, 2],
                   dilations=[2, 2], count_include_pad=include)], [1, 2, 6, 6],
             lambda x, t: counted_average(x, (2, 1, 0, 2), include, 2), opset=19)
operator("average_pool_same_upper",
         [node("AveragePool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")], [1, 2, 6, 6],
         lambda x, t: counted_average(x, (0, 0, 1, 1), 0))
operator("global_average_pool", [node("GlobalAveragePool", ["xp"], ["y"])], [2, 3, 4, 5],
         lambda x, t: x.mean((2, 3), keepdim=True))
for p in (1, 2, 3):
    norm = lambda x, dims: x.abs().pow(p).sum(dims, keepdim=True).pow(1 / p)
    operator(f"global_lp_pool_{p}", [node("GlobalLpPool", ["xp"], ["y"], p=p)], [2, 3, 4, 5], lambda x, t: norm(x, (2, 3)))
    operator(f"lp_pool_{p}", [node("LpPool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, p=p)],
             [1, 2, 7, 6], lambda x, t: F.conv2d(x.abs().pow(p), torch.ones(2, 1, 3, 3), None, 2, 1, 1, 2).pow(1 / p))
operator("lp_pool_1d_dilated", [node("LpPool", ["xp"], ["y"], kernel_shape=[2], dilations=[2], strides=[2], ceil_mode=1)],
         [2, 3, 8], lambda x, t: F.conv1d(F.pad(x * x, [0, 1]), torch.ones(3, 1, 2), None, 2, 0, 2, 3).sqrt(), opset=18)
operator("lp_pool_of_zeros", [node("Relu", ["xp"], ["r"]), node("GlobalLpPool", ["r"], ["y"])], [1, 2, 2, 2],
         lambda x, t: torch.stack([x[:, 0].relu().norm(2, (1, 2)), x[:, 1].relu().sum((1, 2)) * 0], 1)[:, :, None, None],
         x=torch.tensor([1.0, 2, -3, 4, -9, -9, -9, -9]).reshape(1, 2, 2, 2))
operator("global_max_pool", [node("GlobalMaxPool", ["xp"], ["y"])], [2, 3, 4, 5], lambda x, t: x.amax((2, 3), keepdim=True))
operator("global_max_pool_3d", [node("GlobalMaxPool", ["xp"], ["y"])], [1, 2, 3, 2, 2],
         lambda x, t: x.amax((2, 3, 4), keepdim=True))
# All elements of `w` are the maximum: the first one gets the gradient.
operator("global_max_pool_ties", [node("GlobalMaxPool", ["xp"], ["a"]), node("GlobalMaxPool", ["w"], ["b"]),
                                  node("Mul", ["a", "b"], ["y"])], [2, 3, 4],
         lambda x, t: F.adaptive_max_pool1d(x, 1) * F.adaptive_max_pool1d(t["w"], 1), {"w": torch.ones(2, 3, 4)})
operator("max_pool_3d_dilated_ceil",
         [node("MaxPool", ["xp"], ["y"], kernel_shape=[2, 2, 2], strides=[1, 2, 2], dilations=[1, 2, 1], pads=[0, 1, 1] * 2,
               ceil_mode=1)], [1, 2, 3, 6, 5], lambda x, t: F.max_pool3d(x, 2, (1, 2, 2), (0, 1, 1), (1, 2, 1), True))
for axes, function in ((1, F.max_pool1d), (2, F.max_pool2d), (3, F.max_pool3d)):
    operator(f"max_pool_column_major_{axes}d",
             [node("MaxPool", ["xp"], ["y"], kernel_shape=[2] * axes, strides=[1] * axes, storage_order=1)],
             [2, 3, 3, 4, 5][:axes + 2], lambda x, t: function(x, 2, 1))
operator("max_pool_1d_same_lower", [node("MaxPool", ["xp"], ["y"], kernel_shape=[3], strides=[2], auto_pad="SAME_LOWER")],
         [2, 2, 8], lambda x, t: F.max_pool1d(F.pad(x, [1, 0], value=-1e30), 3, 2))
average("average_pool_3d_include_pad", [1, 2, 4, 5, 4], 3, 2, 1, include=True, dims=3)
average("average_pool_3d_ceil", [1, 2, 4, 6, 4], 3, 2, ceil=True, dims=3)
average("average_pool_1d_ceil", [2, 2, 8], 3, 2, ceil=True, dims=1)
operator("average_pool_valid", [node("AveragePool", ["xp"], ["y"], kernel_shape=[3, 2], strides=[2, 2], auto_pad="VALID")],
         [1, 2, 6, 5], lambda x, t: F.avg_pool2d(x, (3, 2), 2))
unpool_indices = F.max_pool2d(torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(1)), 2, 2,
                              return_indices=True)[1]
operator("max_unpool", [node("MaxUnpool", ["xp", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [2, 3, 2, 3],
         lambda x, t: F.max_unpool2d(x, unpool_indices, 2),
         constants={"i": (unpool_indices + torch.arange(6).reshape(2, 3, 1, 1) * 24).numpy()})

# --- Normalization ----------------------------------------------------------------------------------------------------

for rank, shape in ((2, [6, 3]), (3, [4, 3, 5]), (4, [3, 4, 3, 3])):
    norm = {"scale": [shape[1]], "bias": [shape[1]]}
    mean, var = torch.randn(shape[1]), torch.rand(shape[1]) + 0.5
    operator(f"batch_norm_frozen_rank{rank}",
             [node("BatchNormalization", ["xp", "scale", "bias", "mean", "var"], ["y"], epsilon=1e-3)], shape,
             lambda x, t: F.batch_norm(x, mean, var, t["scale"], t["bias"], False, 0, 1e-3), norm,
             {"mean": mean.numpy(), "var": var.numpy()}, frozen=True,
             buffers={"mean": mean, "var": var})
    operator(f"batch_norm_batch_rank{rank}",
             [node("BatchNormalization", ["xp", "scale", "bias", "mean", "var"], ["y"], epsilon=1e-3)], shape,
             lambda x, t: F.batch_norm(x, None, None, t["scale"], t["bias"], True, 0, 1e-3), norm,
             {"mean": mean.numpy(), "var": var.numpy()}, buffers={})
    cases[-1]["buffers"] = {"mean": pack(mean), "var": pack(var)}  # read but not compared: ONNX keeps another variance
for kind, axis, dims in (("last", -1, 1), ("two", 2, 2), ("all_but_batch", 1, 3)):
    shape = [2, 3, 4, 5]
    normalised = {"scale": shape[-dims:], "bias": shape[-dims:]}
    operator(f"layer_norm_{kind}", [node("LayerNormalization", ["xp", "scale", "bias"], ["y"], axis=axis, epsilon=1e-3)],
             shape, lambda x, t: F.layer_norm(x, shape[-dims:], t["scale"], t["bias"], 1e-3), normalised, opset=17)
operator("layer_norm_no_bias", [node("LayerNormalization", ["xp", "scale"], ["y"])], [4, 6],
         lambda x, t: F.layer_norm(x, [6], t["scale"], None), {"scale": [6]}, opset=17)
operator("layer_norm_own_outputs", [node("LayerNormalization", ["xp", "scale", "bias"], ["y", "mean", "inv"])], [3, 4, 6],
         lambda x, t: F.layer_norm(x, [6], t["scale"], t["bias"]), {"scale": [6], "bias": [6]}, opset=17)
for groups in (1, 2, 6):
    operator(f"group_norm_{groups}", [node("GroupNormalization", ["xp", "scale", "bias"], ["y"], num_groups=groups,
                                           epsilon=1e-3)], [3, 6, 3, 2],
             lambda x, t: F.group_norm(x, groups, t["scale"], t["bias"], 1e-3), {"scale": [6], "bias": [6]}, opset=21)
operator("group_norm_1d", [node("GroupNormalization", ["xp", "scale", "bias"], ["y"], num_groups=2)], [2, 4, 5],
         lambda x, t: F.group_norm(x, 2, t["scale"], t["bias"]), {"scale": [4], "bias": [4]}, opset=21)
# Before opset 21 scale and bias belong to groups.
operator("group_norm_opset18", [node("GroupNormalization", ["xp", "scale", "bias"], ["y"], num_groups=2)], [2, 6, 2, 2],
         lambda x, t: F.group_norm(x, 2, t["scale"].repeat_interleave(3), t["bias"].repeat_interleave(3)),
         {"scale": [2], "bias": [2]}, opset=18)
for shape in ([2, 3, 7], [2, 3, 4, 3], [1, 2, 3, 2, 2]):
    operator(f"instance_norm_{len(shape) - 2}d", [node("InstanceNormalization", ["xp", "scale", "bias"], ["y"],
                                                       epsilon=1e-3)], shape,
             lambda x, t: F.instance_norm(x, weight=t["scale"], bias=t["bias"], eps=1e-3),
             {"scale": [shape[1]], "bias": [shape[1]]})


def mean_variance(x, axes):
    centred = x - x.mean(axes, keepdim=True)
    return centred / centred.pow(2).mean(axes, keepdim=True).sqrt()


operator("mean_variance_norm", [node("MeanVarianceNormalization", ["xp"], ["y"])], [3, 2, 4, 3],
         lambda x, t: mean_variance(x, (0, 2, 3)), opset=13)
operator("mean_variance_norm_axes", [node("MeanVarianceNormalization", ["xp"], ["y"], axes=[-1, 0])], [3, 2, 4],
         lambda x, t: mean_variance(x, (0, 2)), opset=13)


def local_response(x, size, alpha, beta, bias):
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = F.pad((x * x).reshape(*x.shape[:2], -1), [0, 0, before, after])
    total = sum(squares[:, i:i + x.shape[1]] for i in range(size)).reshape(x.shape)
    return x / (bias + alpha / size * total) ** beta


for size, shape in ((3, [2, 5, 3, 2]), (1, [1, 3, 2, 2]), (5, [2, 3, 3, 3])):
    operator(f"lrn_{size}", [node("LRN", ["xp"], ["y"], size=size, alpha=0.5, beta=0.6, bias=1.5)], shape,
             lambda x, t: local_response(x, size, 0.5, 0.6, 1.5))
operator("lrn_default", [node("LRN", ["xp"], ["y"], size=3)], [1, 4, 2, 2],
         lambda x, t: local_response(x, 3, 1e-4, 0.75, 1.0))

# --- Functions of one number ------------------------------------------------------------------------------------------

def function(name, op, reference, low=-2.0, high=2.0, opset=16, **attributes):
    """op on values between low and high; p is 0, so that none leaves that range."""
    values = low + (high - low) * torch.rand([3, 5], generator=torch.Generator().manual_seed(len(cases)))
    operator(name, [node(op, ["xp"], ["y"], **attributes)], [3, 5], lambda x, t: reference(x), {"p": torch.zeros(3, 5)},
             x=values, opset=opset)


for op, reference, low, high in (
        ("Neg", torch.neg, -2, 2), ("Abs", torch.abs, -2, 2), ("Exp", torch.exp, -2, 2), ("Log", torch.log, 0.2, 3),
        ("Sqrt", torch.sqrt, 0.2, 3), ("Reciprocal", torch.reciprocal, 0.4, 3), ("Erf", torch.erf, -2, 2),
        ("Sin", torch.sin, -3, 3), ("Cos", torch.cos, -3, 3), ("Tan", torch.tan, -1.2, 1.2),
        ("Asin", torch.asin, -0.9, 0.9), ("Acos", torch.acos, -0.9, 0.9), ("Atan", torch.atan, -3, 3),
        ("Sinh", torch.sinh, -2, 2), ("Cosh", torch.cosh, -2, 2), ("Tanh", torch.tanh, -2, 2),
        ("Asinh", torch.asinh, -3, 3), ("Acosh", torch.acosh, 1.2, 4), ("Atanh", torch.atanh, -0.9, 0.9)):
    function(op.lower(), op, reference, low, high)
for kind, exponent in (("square", 2.0), ("cube", 3.0), ("root", 0.5), ("inverse", -1.0), ("one", 1.0), ("zero", 0.0)):
    known = node("Constant", [], ["e"], value=numpy_helper.from_array(np.float32(exponent)))
    operator(f"pow_{kind}", [known, node("Pow", ["xp", "e"], ["y"])], [2, 3], lambda x, t: x ** exponent,
             {"p": torch.zeros(2, 3)}, x=torch.rand(2, 3) + 0.5)
operator("pow_integer", [node("Pow", ["xp", "e"], ["y"])], [2, 3], lambda x, t: x ** torch.tensor([0.0, 2.0, 3.0]),
         constants={"e": np.array([0, 2, 3], np.int64)})
operator("pow_both", [node("Pow", ["xp", "e"], ["y"])], [2, 3, 2], lambda x, t: x ** t["e"],
         {"p": torch.zeros(2, 3, 2), "e": [3, 1]}, x=torch.rand(2, 3, 2) + 0.5)
# A base of 0: 0 ** 0 and 0 ** 2 have no slope in the exponent, and 0 ** 0 none in the base.
operator("pow_of_zero", [node("Pow", ["xp", "e"], ["y"])], [4], lambda x, t: x ** t["e"],
         {"p": torch.zeros(4), "e": torch.tensor([0.0, 2.0, 2.0, 0.0])}, x=torch.tensor([0.0, 0.0, 1.5, 2.0]))

# --- Activations ------------------------------------------------------------------------------------------------------

operator("relu", [node("Relu", ["xp"], ["y"])], [3, 7], lambda x, t: x.relu())
operator("clip_both", [node("Clip", ["xp", "low", "high"], ["y"])], [4, 7], lambda x, t: x.clamp(-0.4, 0.9),
         constants={"low": np.float32(-0.4), "high": np.float32(0.9)})
operator("clip_low", [node("Clip", ["xp", "low"], ["y"])], [4, 7], lambda x, t: x.clamp(min=-0.4),
         constants={"low": np.float32(-0.4)})
operator("clip_high", [node("Clip", ["xp", "", "high"], ["y"])], [4, 7], lambda x, t: x.clamp(max=0.3),
         constants={"high": np.float32(0.3)})
operator("clip_nothing", [node("Clip", ["xp"], ["y"])], [4, 3], lambda x, t: x * 1)
operator("sigmoid", [node("Sigmoid", ["xp"], ["y"])], [3, 7], lambda x, t: x.sigmoid())

at_kinks = torch.tensor([[-4.0, -3.0, -1.0, -0.5, 0.0, 0.5], [0.25, 1.0, 2.0, 2.5, 3.0, 4.0]])


def activation(name, op, reference, opset=16, kinks=True, **attributes):
    """On random values and, where both sides have agreed on a slope there, at the kinks."""
    function(name, op, reference, -4, 4, opset, **attributes)
    if kinks:
        operator(f"{name}_at_kinks", [node(op, ["xp"], ["y"], **attributes)], [2, 6], lambda x, t: reference(x),
                 {"p": torch.zeros(2, 6)}, x=at_kinks, opset=opset)


activation("gelu", "Gelu", F.gelu, opset=20)
activation("gelu_tanh", "Gelu", lambda x: F.gelu(x, approximate="tanh"), opset=20, approximate="tanh")
activation("elu", "Elu", F.elu)
activation("elu_alpha", "Elu", lambda x: F.elu(x, 0.3), alpha=0.3)
activation("elu_negative_alpha", "Elu", lambda x: torch.where(x > 0, x, -0.5 * torch.expm1(x)), kinks=False, alpha=-0.5)
activation("selu", "Selu", F.selu)
activation("selu_own", "Selu", lambda x: torch.where(x > 0, 2.0 * x, 2.0 * 0.5 * torch.expm1(x)), kinks=False, alpha=0.5,
           gamma=2.0)
activation("celu", "Celu", F.celu)
activation("celu_alpha", "Celu", lambda x: F.celu(x, 0.7), alpha=0.7)
activation("leaky_relu", "LeakyRelu", F.leaky_relu)
activation("leaky_relu_negative", "LeakyRelu", lambda x: F.leaky_relu(x, -0.4), alpha=-0.4)
activation("hard_sigmoid", "HardSigmoid", lambda x: (0.2 * x + 0.5).clamp(0, 1), kinks=False)
activation("hard_sigmoid_sixth", "HardSigmoid", F.hardsigmoid, alpha=1 / 6)
activation("hard_swish", "HardSwish", F.hardswish, kinks=False)
activation("mish", "Mish", F.mish, opset=18)
activation("softplus", "Softplus", F.softplus)
activation("softsign", "Softsign", F.softsign)
activation("thresholded_relu", "ThresholdedRelu", lambda x: F.threshold(x, 0.5, 0), alpha=0.5)
activation("thresholded_relu_below", "ThresholdedRelu", lambda x: F.threshold(x, -1.5, 0), alpha=-1.5)
activation("shrink_hard", "Shrink", F.hardshrink)
activation("shrink_soft", "Shrink", F.softshrink, lambd=0.5, bias=0.5)
activation("shrink_jump", "Shrink", lambda x: torch.where(x.abs() > 0.5, x - x.sign() * 1.5, 0 * x), lambd=0.5, bias=1.5)
for kind, shape in {"one": [1], "channel": [3, 1], "full": [2, 3, 4]}.items():
    operator(f"prelu_{kind}", [node("PRelu", ["xp", "w"], ["y"])], [2, 3, 4], lambda x, t: torch.where(x > 0, x, t["w"] * x),
             {"w": shape})
for axis in (-1, 0, 1):
    name = {-1: "last", 0: "first", 1: "second"}[axis]
    operator(f"softmax_{name}", [node("Softmax", ["xp"], ["y"], axis=axis)], [2, 3, 4], lambda x, t: x.softmax(axis))
    operator(f"log_softmax_{name}", [node("LogSoftmax", ["xp"], ["y"], axis=axis)], [2, 3, 4],
             lambda x, t: x.log_softmax(axis))
# Ratio 0 keeps everything. With ratio 0.75 the kept ones are scaled by 4; the mask is ONNX Runtime's.
operator("dropout_keeping_all", [node("Dropout", ["xp", "ratio", "training"], ["y"])], [3, 5], lambda x, t: x * 1,
         constants={"ratio": np.float32(0), "training": np.bool_(True)})
operator("dropout_masked", [node("Dropout", ["xp", "ratio", "training"], ["y"])], [9, 11], lambda x, t: x * 4,
         constants={"ratio": np.float32(0.75), "training": np.bool_(True)}, loss="sum", compare_loss=False,
         mask_gradients=True)
operator("dropout_in_inference", [node("Dropout", ["xp", "ratio"], ["y"])], [3, 5], lambda x, t: x * 1,
         constants={"ratio": np.float32(0.5)})

# --- Element-wise arithmetic and broadcasting -------------------------------------------------------------------------

arithmetic = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": lambda a, b: a / b}
broadcasts = {"equal": [2, 3, 4], "row": [4], "column": [3, 1], "scalar": [], "inner": [1, 3, 1], "larger": [2, 2, 3, 4],
              "mixed": [5, 1, 3, 1]}
for op, function in arithmetic.items():
    for kind, shape in broadcasts.items():
        torch.manual_seed(1000 + len(cases))
        far_from_zero = torch.rand(shape) + 0.7
        operator(f"{op.lower()}_{kind}", [node(op, ["xp", "w"], ["y"])], [2, 3, 4], lambda x, t: function(x, t["w"]),
                 {"w": far_from_zero.clone()})
    operator(f"{op.lower()}_swapped", [node("Sigmoid", ["xp"], ["s"]), node(op, ["w", "s"], ["y"])], [2, 1, 4],
             lambda x, t: function(t["w"], x.sigmoid()), {"w": [3, 1]})
operator("mod_float", [node("Mod", ["xp", "w"], ["y"], fmod=1)], [2, 3, 4], lambda x, t: torch.fmod(x * 1, t["w"]),
         {"p": torch.zeros(2, 3, 4), "w": torch.rand(3, 1) + 0.3}, x=torch.rand(2, 3, 4) * 8 - 4)
for op, fold in (("Sum", sum), ("Mean", lambda v: sum(v) / len(v))):
    operator(f"{op.lower()}_variadic", [node(op, ["xp", "v", "w"], ["y"])], [2, 3, 4], lambda x, t: fold([x, t["v"], t["w"]]),
             {"v": [3, 1], "w": [5, 1, 3, 4]})
    operator(f"{op.lower()}_single", [node(op, ["xp"], ["y"])], [2, 3], lambda x, t: x * 1)
for op, two, many in (("Max", torch.maximum, torch.amax), ("Min", torch.minimum, torch.amin)):
    whole = torch.randint(-2, 3, [2, 3, 4]).float()  # integers, so that many tie
    operator(f"{op.lower()}_two", [node(op, ["xp", "w"], ["y"])], [2, 3, 4], lambda x, t: two(x, t["w"]),
             {"p": torch.zeros(2, 3, 4), "w": torch.randint(-2, 3, [3, 1]).float()}, x=whole)
    operator(f"{op.lower()}_three", [node(op, ["xp", "v", "w"], ["y"])], [2, 3, 4],
             lambda x, t: many(torch.stack(torch.broadcast_tensors(x, t["v"], t["w"])), 0),
             {"p": torch.zeros(2, 3, 4), "v": torch.randint(-2, 3, [4]).float(),
              "w": torch.randint(-2, 3, [2, 2, 1, 4]).float()}, x=whole)
    operator(f"{op.lower()}_one", [node(op, ["xp"], ["y"])], [2, 3], lambda x, t: x * 1)
mask = np.array([[True], [False], [True]])
operator("where", [node("Where", ["m", "xp", "w"], ["y"])], [2, 1, 4], lambda x, t: torch.where(torch.tensor(mask), x, t["w"]),
         {"w": [1]}, {"m": mask})
operator("cast_there_and_back", [node("Cast", ["xp"], ["d"], to=TensorProto.DOUBLE), node("Exp", ["d"], ["s"]),
                                 node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)], [2, 3],
         lambda x, t: x.double().exp().float())
operator("cast_like", [node("Cast", ["w"], ["d"], to=TensorProto.DOUBLE), node("CastLike", ["xp", "d"], ["l"]),
                       node("Mul", ["l", "d"], ["m"]), node("Cast", ["m"], ["y"], to=TensorProto.FLOAT)], [2, 3],
         lambda x, t: (x.double() * t["w"].double()).float(), {"w": [3]})
# What stops the gradient by definition cuts its path and no other.
operator("stopped_paths", [node("Sign", ["xp"], ["a"]), node("Floor", ["xp"], ["b"]), node("ArgMax", ["xp"], ["i"], axis=1),
                           node("Cast", ["i"], ["c"], to=TensorProto.FLOAT), node("Greater", ["xp", "a"], ["g"]),
                           node("Where", ["g", "xp", "b"], ["d"]), node("Sum", ["a", "b", "c", "d"], ["y"])], [3, 4],
         lambda x, t: x.sign() + x.floor() + x.argmax(1, keepdim=True) + torch.where(x > x.sign(), x, x.floor()))
operator("mul_by_itself", [node("Mul", ["xp", "xp"], ["y"])], [2, 3], lambda x, t: x * x)
operator("read_by_four", [node("Relu", ["xp"], ["a"]), node("Sigmoid", ["xp"], ["b"]), node("Mul", ["a", "b"], ["c"]),
                          node("Add", ["c", "xp"], ["d"]), node("Sub", ["d", "a"], ["y"])], [2, 3],
         lambda x, t: x.relu() * x.sigmoid() + x - x.relu())

# --- Shapes -----------------------------------------------------------------------------------------------------------

ints = lambda *v: np.array(v, np.int64)
operator("reshape", [node("Reshape", ["xp", "s"], ["y"])], [2, 3, 4], lambda x, t: x.reshape(4, 6),
         constants={"s": ints(4, -1)})
operator("flatten", [node("Flatten", ["xp"], ["y"], axis=2)], [2, 3, 4], lambda x, t: x.reshape(6, 4))
operator("squeeze", [node("Squeeze", ["xp", "a"], ["y"])], [2, 1, 3, 1], lambda x, t: x.squeeze(1),
         constants={"a": ints(1)})
operator("unsqueeze", [node("Unsqueeze", ["xp", "a"], ["y"])], [2, 3], lambda x, t: x.reshape(1, 2, 3, 1),
         constants={"a": ints(0, -1)})
operator("transpose", [node("Transpose", ["xp"], ["y"], perm=[2, 0, 1])], [2, 3, 4], lambda x, t: x.permute(2, 0, 1))
operator("transpose_default", [node("Transpose", ["xp"], ["y"])], [2, 3, 4], lambda x, t: x.permute(2, 1, 0))
operator("identity", [node("Identity", ["xp"], ["y"])], [2, 3], lambda x, t: x * 1)
operator("concat", [node("Concat", ["w", "xp", "xp", "v"], ["y"], axis=-2)], [2, 3, 4],
         lambda x, t: torch.cat([t["w"], x, x, t["v"]], -2), {"w": [2, 1, 4], "v": [2, 2, 4]})
operator("pad_constant", [node("Pad", ["xp", "n", "v"], ["y"])], [2, 3, 4],
         lambda x, t: F.pad(x, [1, 0, 0, 2], value=0.5),
         constants={"n": ints(0, 0, 1, 0, 2, 0), "v": np.float32(0.5)})
operator("pad_negative", [node("Pad", ["xp", "n"], ["y"])], [2, 4, 5], lambda x, t: F.pad(x, [-1, 2, 1, -2]),
         constants={"n": ints(0, 1, -1, 0, -2, 2)})
operator("pad_reflect", [node("Pad", ["xp", "n"], ["y"], mode="reflect")], [1, 2, 4, 5],
         lambda x, t: F.pad(x, [2, 1, 1, 3], mode="reflect"), constants={"n": ints(0, 0, 1, 2, 0, 0, 3, 1)})
operator("pad_edge", [node("Pad", ["xp", "n"], ["y"], mode="edge")], [1, 2, 3, 4],
         lambda x, t: F.pad(x, [2, 1, 1, 3], mode="replicate"), constants={"n": ints(0, 0, 1, 2, 0, 0, 3, 1)})

operator("pad_wrap", [node("Pad", ["xp", "n"], ["y"], mode="wrap")], [1, 2, 4, 5],
         lambda x, t: F.pad(x, [2, 1, 1, 3], mode="circular"), constants={"n": ints(0, 0, 1, 2, 0, 0, 3, 1)}, opset=19)
operator("pad_axes", [node("Pad", ["xp", "n", "", "a"], ["y"])], [2, 3, 4], lambda x, t: F.pad(x, [1, 2, 0, 0, 3, 0]),
         constants={"n": ints(1, 3, 2, 0), "a": ints(-1, 0)}, opset=18)
# --- Resize -----------------------------------------------------------------------------------------------------------

def interpolation_matrix(size, out, scale, mode, coordinates, nearest_mode="round_prefer_floor", a=-0.75, exclude=False,
                         antialias=False, roi=(0, 1)):
    """[out, size], from the text of ONNX's Resize."""
    matrix = np.zeros((out, size))
    for o in range(out):
        if coordinates == "asymmetric":
            at = o / scale
        elif coordinates == "align_corners":
            at = o * (size - 1) / (out - 1) if out > 1 else 0
        elif coordinates == "pytorch_half_pixel":
            at = (o + 0.5) / scale - 0.5 if out > 1 else 0
        elif coordinates == "half_pixel_symmetric":
            at = size / 2 * (1 - out / (scale * size)) + (o + 0.5) / scale - 0.5
        elif coordinates == "tf_crop_and_resize":
            at = (roi[0] * (size - 1) + o * (roi[1] - roi[0]) * (size - 1) / (out - 1) if out > 1
                  else 0.5 * (roi[0] + roi[1]) * (size - 1))
            if at < 0 or at > size - 1:
                continue
        else:
            at = (o + 0.5) / scale - 0.5
        if mode == "nearest":
            pick = {"floor": np.floor(at), "ceil": np.ceil(at), "round_prefer_floor": np.ceil(at - 0.5),
                    "round_prefer_ceil": np.floor(at + 0.5)}[nearest_mode]
            matrix[o, int(np.clip(pick, 0, size - 1))] = 1
            continue
        stretch = min(scale, 1) if antialias else 1
        cells = np.arange(int(np.floor(at)) - int(3 / stretch) - 2, int(np.floor(at)) + int(3 / stretch) + 3)
        distance = np.abs((cells - at) * stretch)
        if mode == "linear":
            weight = np.maximum(0, 1 - distance)
        else:
            weight = np.where(distance <= 1, (a + 2) * distance ** 3 - (a + 3) * distance ** 2 + 1,
                              np.where(distance < 2, a * (distance ** 3 - 5 * distance ** 2 + 8 * distance - 4), 0))
        if exclude:
            weight = weight * ((cells >= 0) & (cells < size))
        for cell, value in zip(np.clip(cells, 0, size - 1), weight / weight.sum()):
            matrix[o, cell] += value
    return matrix


def resize(name, x_shape, scales=None, sizes=None, axes=None, roi=None, opset=19, **attributes):
    """scales or sizes: one per axis of `axes` (all when none are given)."""
    own = axes if axes is not None else range(len(x_shape))
    if sizes is not None:
        factors = [s / x_shape[a] for a, s in zip(own, sizes)]
        policy = attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [(min if policy == "not_larger" else max)(factors)] * len(factors)
            sizes = [int(f * x_shape[a] + 0.5) for a, f in zip(own, factors)]
    else:
        factors = scales
        sizes = [int(np.floor(x_shape[a] * f)) for a, f in zip(own, scales)]
    text = lambda key, otherwise: attributes.get(key, otherwise)
    matrices = {}
    for i, (axis, out, factor) in enumerate(zip(own, sizes, factors)):
        if out != x_shape[axis] or roi:
            matrices[axis] = torch.tensor(interpolation_matrix(
                x_shape[axis], out, factor, text("mode", "nearest"), text("coordinate_transformation_mode", "half_pixel"),
                text("nearest_mode", "round_prefer_floor"), text("cubic_coeff_a", -0.75), text("exclude_outside", 0),
                text("antialias", 0), (roi[i], roi[len(sizes) + i]) if roi else (0, 1)), dtype=torch.float32)

    def reference(x, t):
        for axis, matrix in matrices.items():
            x = torch.tensordot(x, matrix, ([axis], [1])).movedim(-1, axis)
        return x

    constants = {"s": np.array(scales, np.float32)} if scales is not None else {"s": ints(*original_sizes[name])}
    if roi:
        constants["r"] = np.array(roi, np.float32)
    inputs = ["xp", "r" if roi else ""] + (["s"] if scales is not None else ["", "s"])
    operator(name, [node("Resize", inputs, ["y"], **attributes, **({"axes": list(axes)} if axes is not None else {}))],
             x_shape, reference, constants=constants, opset=opset)


original_sizes = {}


def resize_to(name, x_shape, sizes, **options):
    original_sizes[name] = sizes
    resize(name, x_shape, sizes=sizes, **options)


def interpolate(name, x_shape, scale, reference, **attributes):  # what PyTorch itself computes
    operator(name, [node("Resize", ["xp", "", "s"], ["y"], **attributes)], x_shape, reference,
             constants={"s": np.array([1, 1, *scale], np.float32)}, opset=attributes.get("antialias", 0) and 18 or 13)


interpolate("resize_pytorch_nearest", [2, 3, 4, 3], (2, 3), lambda x, t: F.interpolate(x, scale_factor=(2, 3)),
            coordinate_transformation_mode="asymmetric", nearest_mode="floor")
interpolate("resize_pytorch_nearest_1d", [2, 3, 4], (2,), lambda x, t: F.interpolate(x, scale_factor=2),
            coordinate_transformation_mode="asymmetric", nearest_mode="floor")
interpolate("resize_pytorch_bilinear", [1, 2, 4, 3], (2, 3),
            lambda x, t: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"), mode="linear",
            coordinate_transformation_mode="pytorch_half_pixel")
interpolate("resize_pytorch_bilinear_corners", [1, 2, 4, 3], (2, 3),
            lambda x, t: F.interpolate(x, scale_factor=(2, 3), mode="bilinear", align_corners=True), mode="linear",
            coordinate_transformation_mode="align_corners")
interpolate("resize_pytorch_bicubic", [1, 2, 4, 5], (2, 2),
            lambda x, t: F.interpolate(x, scale_factor=2, mode="bicubic"), mode="cubic",
            coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75)
interpolate("resize_pytorch_trilinear", [1, 2, 2, 3, 3], (2, 2, 2),
            lambda x, t: F.interpolate(x, scale_factor=2, mode="trilinear"), mode="linear",
            coordinate_transformation_mode="pytorch_half_pixel")
interpolate("resize_pytorch_bicubic_antialias", [1, 2, 8, 12], (0.5, 0.25),
            lambda x, t: F.interpolate(x, scale_factor=(0.5, 0.25), mode="bicubic", antialias=True), mode="cubic",
            antialias=1, exclude_outside=1, cubic_coeff_a=-0.5)
for mode in ("nearest", "linear", "cubic"):
    for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
        resize(f"resize_{mode}_{coordinates}_up", [1, 1, 4, 3], [1, 1, 1.6, 2.3], mode=mode,
               coordinate_transformation_mode=coordinates)
        resize(f"resize_{mode}_{coordinates}_down", [1, 1, 8, 9], [1, 1, 0.6, 0.45], mode=mode,
               coordinate_transformation_mode=coordinates)
    resize_to(f"resize_{mode}_sizes", [1, 1, 4, 6], [1, 1, 7, 5], mode=mode)
    resize_to(f"resize_{mode}_crop", [1, 1, 5, 6], [1, 1, 4, 3], mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
              roi=[0, 0, 0.4, -0.2, 1, 1, 0.6, 0.8])
for nearest_mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    resize(f"resize_nearest_{nearest_mode}", [1, 2, 4, 5], [1, 1, 2, 0.5], nearest_mode=nearest_mode,
           coordinate_transformation_mode="asymmetric")
    resize_to(f"resize_nearest_{nearest_mode}_half_pixel", [1, 2, 4, 5], [1, 1, 6, 9], nearest_mode=nearest_mode)
resize("resize_cubic_exclude", [1, 1, 4, 5], [1, 1, 1.5, 0.6], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
resize("resize_linear_antialias_edges", [1, 2, 9, 7], [1, 1, 0.4, 0.5], mode="linear", antialias=1)
resize("resize_cubic_antialias_edges", [1, 2, 9, 8], [1, 1, 0.4, 0.5], mode="cubic", antialias=1)
resize("resize_linear_antialias_up", [1, 2, 3, 4], [1, 1, 2, 1.5], mode="linear", antialias=1)
resize("resize_axes", [1, 2, 4, 3], [2.0, 1.5], axes=[3, 2], mode="linear")
resize_to("resize_axes_sizes", [1, 2, 4, 3], [6], axes=[-1 + 4])
for policy in ("not_larger", "not_smaller"):
    resize_to(f"resize_{policy}", [1, 2, 4, 6], [7, 8], axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy)
resize_to("resize_to_one", [1, 2, 4, 3], [1, 2, 1, 1], mode="linear", coordinate_transformation_mode="align_corners")
operator("upsample", [node("Upsample", ["xp", "s"], ["y"], mode="nearest")], [1, 2, 3, 2],
         lambda x, t: F.interpolate(x, scale_factor=(2, 3)), constants={"s": np.array([1, 1, 2, 3], np.float32)}, opset=9)

operator("expand", [node("Expand", ["xp", "s"], ["y"])], [3, 1], lambda x, t: x.expand(2, 3, 4), constants={"s": ints(2, 1, 4)})
operator("tile", [node("Tile", ["xp", "r"], ["y"])], [2, 3, 1], lambda x, t: x.repeat(2, 1, 3), constants={"r": ints(2, 1, 3)})
for kind, start, end, axes, step, index in (
        ("middle", [1], [3], [1], None, np.s_[:, 1:3]), ("default_axes", [1, 0], [9, -1], None, None, np.s_[1:, :-1]),
        ("steps", [0, 1], [7, 9], [0, 1], [3, 2], np.s_[0:7:3, 1::2]), ("ragged", [1], [6], [0], [2], np.s_[1:6:2]),
        ("backwards", [-1, 4], [-9, 0], [0, -2], [-1, -2], np.s_[::-1, 4:0:-2]),
        ("one_of_many", [2], [3], [0], [5], np.s_[2:3]), ("one_backwards", [2], [1], [0], [-4], np.s_[2:1:-1]),
        ("empty", [3], [2], [0], None, np.s_[3:2])):
    constants = {"s": ints(*start), "e": ints(*end)}
    names = ["xp", "s", "e", "", ""]
    for place, name, values in ((3, "a", axes), (4, "t", step)):
        if values is not None:
            constants[name], names[place] = ints(*values), name
    size = [7, 6, 2] if "backwards" in kind or kind == "steps" else [7, 3]
    read = np.arange(int(np.prod(size))).reshape(size)[index]
    operator(f"slice_{kind}", [node("Slice", names, ["s1"]), node("ReduceSumSquare", ["s1"], ["y"], keepdims=0)], size,
             lambda x, t: x.flatten()[torch.tensor(read.flatten().copy(), dtype=torch.long)].square().sum(), constants=constants)
operator("split_all", [node("Split", ["xp", "s"], ["a", "b", "c"], axis=1), node("Mul", ["a", "c"], ["d"]),
                       node("Concat", ["b", "d"], ["y"], axis=1)], [2, 5, 2],
         lambda x, t: torch.cat([x[:, 1:4], x[:, :1] * x[:, 4:]], 1), constants={"s": ints(1, 3, 1)})
operator("split_some", [node("Split", ["xp"], ["a", "b", "c"], axis=-1), node("Sin", ["b"], ["y"])], [2, 6],
         lambda x, t: x[:, 2:4].sin())
operator("split_one", [node("Split", ["xp"], ["y"], axis=0)], [2, 3], lambda x, t: x * 1)
blocks = lambda x: F.pixel_unshuffle(x, 2).reshape(2, 3, 2, 2, 2, 3)
operator("space_to_depth", [node("SpaceToDepth", ["xp"], ["y"], blocksize=2)], [2, 3, 4, 6],
         lambda x, t: blocks(x).permute(0, 2, 3, 1, 4, 5).reshape(2, 12, 2, 3))
operator("depth_to_space_dcr", [node("DepthToSpace", ["xp"], ["y"], blocksize=2)], [2, 12, 2, 3],
         lambda x, t: F.pixel_shuffle(x.reshape(2, 2, 2, 3, 2, 3).permute(0, 3, 1, 2, 4, 5).reshape(2, 12, 2, 3), 2))
operator("depth_to_space_crd", [node("DepthToSpace", ["xp"], ["y"], blocksize=2, mode="CRD")], [2, 12, 2, 3],
         lambda x, t: F.pixel_shuffle(x, 2))
operator("trilu_lower", [node("Trilu", ["xp", "k"], ["y"], upper=0)], [2, 3, 4], lambda x, t: x.tril(-1),
         constants={"k": np.int64(-1)})
operator("trilu_upper", [node("Trilu", ["xp"], ["y"])], [3, 4], lambda x, t: x.triu())
operator("reverse_sequence", [node("ReverseSequence", ["xp", "l"], ["y"], time_axis=0, batch_axis=1)], [4, 3, 2],
         lambda x, t: torch.stack([torch.cat([x[:n, i].flip(0), x[n:, i]]) for i, n in enumerate((1, 3, 4))], 1),
         constants={"l": ints(1, 3, 4)})

# --- Indices ----------------------------------------------------------------------------------------------------------

torch.manual_seed(41)
for kind, axis, index in (("rows", 0, [[1, -1], [1, 0], [2, 1]]), ("columns", -1, [0, 2, 2]), ("one", 1, 2), ("one_listed", 1, [-1])):
    at = torch.tensor(index)
    operator(f"gather_{kind}", [node("Gather", ["xp", "i"], ["y"], axis=axis)], [3, 4, 3],
             lambda x, t: x.index_select(axis, at.flatten() % x.shape[axis]).reshape(
                 [*x.shape[:axis % 3], *at.shape, *x.shape[axis % 3 + 1:]]), constants={"i": ints(index).reshape(at.shape)})
# An index that is not known before the step.
operator("gather_by_data", [node("ArgMax", ["xp"], ["i"], axis=1, keepdims=0), node("Gather", ["w", "i"], ["e"]),
                            node("Add", ["e", "xp"], ["y"])], [4, 3], lambda x, t: t["w"][x.argmax(1)] + x, {"w": [3, 3]})
at = torch.randint(0, 3, [2, 2, 4])
operator("gather_elements", [node("GatherElements", ["xp", "i"], ["y"], axis=1)], [2, 3, 4], lambda x, t: x.gather(1, at),
         constants={"i": at.numpy() - 3 * (at.numpy() == 2)})
for kind, tuples, batch, reference in (
        ("full", [[0, 1, 2], [1, 0, -1], [0, 1, 2]], 0, lambda x: x[[0, 1, 0], [1, 0, 1], [2, 3, 2]]),
        ("rows", [[[1]], [[0]], [[-1]]], 0, lambda x: x[[1, 0, 1]].reshape(3, 1, 3, 4)),
        ("batch", [[[1], [1]], [[2], [-3]]], 1, lambda x: torch.stack([x[0, [1, 1]], x[1, [2, 0]]])),
        ("batch_full", [[[1, 3], [1, 3]], [[2, 0], [0, 1]]], 1,
         lambda x: torch.stack([x[0, [1, 1], [3, 3]], x[1, [2, 0], [0, 1]]]))):
    operator(f"gather_nd_{kind}", [node("GatherND", ["xp", "i"], ["y"], batch_dims=batch)], [2, 3, 4],
             lambda x, t: reference(x), constants={"i": np.array(tuples, np.int64)})
at = torch.tensor([[0, 2, 1], [2, 0, 0]])
operator("scatter_elements", [node("ScatterElements", ["xp", "i", "w"], ["y"], axis=0)], [3, 4],
         lambda x, t: x.scatter(0, at, t["w"]), {"w": [2, 3]}, {"i": at.numpy()})
at = torch.tensor([[0, 2, 1], [2, 0, 3]])
operator("scatter_old", [node("Scatter", ["xp", "i", "w"], ["y"], axis=1)], [3, 4],
         lambda x, t: x.scatter(1, at, t["w"]), {"w": [2, 3]}, {"i": at.numpy()}, opset=9)
at = torch.tensor([[0, 2, 0], [0, 2, 1]])  # equal indices meet
for kind, reduction in (("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")):
    operator(f"scatter_elements_{kind}", [node("ScatterElements", ["xp", "i", "w"], ["y"], axis=0, reduction=kind)], [3, 4],
             lambda x, t: x.scatter_reduce(0, at, t["w"], reduction), {"w": [2, 3]}, {"i": at.numpy()}, opset=18)
    operator(f"scatter_elements_{kind}_integers",
             [node("ScatterElements", ["xp", "i", "w"], ["y"], axis=0, reduction=kind)], [3, 4],
             lambda x, t: x.scatter_reduce(0, at, t["w"], reduction),
             {"p": torch.zeros(3, 4), "w": torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, -1.0]])}, {"i": at.numpy()},
             x=torch.tensor([[1.0, 2.0, 3.0, 0.0], [0.0, 1.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0]]), opset=18)
operator("scatter_nd", [node("ScatterND", ["xp", "i", "w"], ["y"])], [3, 4],
         lambda x, t: torch.cat([t["w"][1:], x[1:2], t["w"][:1]]), {"w": [2, 4]}, {"i": np.array([[2], [0]])})
for kind, reduction in (("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")):
    operator(f"scatter_nd_{kind}", [node("ScatterND", ["xp", "i", "w"], ["y"], reduction=kind)], [3, 4],
             lambda x, t: x.scatter_reduce(0, torch.tensor([0, 2, 1]).reshape(3, 1).expand(3, 4), t["w"], reduction),
             {"w": [3, 4]}, {"i": np.array([[0], [-1], [1]])}, opset=18)
operator("compress_axis", [node("Compress", ["xp", "c"], ["y"], axis=1)], [2, 4, 3], lambda x, t: x[:, [0, 2]],
         constants={"c": np.array([True, False, True])})
operator("compress_flat", [node("Compress", ["xp", "c"], ["y"])], [2, 3], lambda x, t: x.flatten()[[1, 2, 5]],
         constants={"c": np.array([False, True, True, False, False, True])})
hot = F.one_hot(torch.tensor([[0, 2], [1, 2]]), 3).float()
operator("one_hot_values", [node("Neg", ["w"], ["n"]), node("OneHot", ["i", "d", "n"], ["h"], axis=-1), node("Mul", ["h", "xp"], ["y"])], [2, 2, 3],
         lambda x, t: -(t["w"][0] + (t["w"][1] - t["w"][0]) * hot) * x, {"w": [2]},
         {"i": np.array([[0, 2], [1, -1]]), "d": np.int64(3)})

# --- Einsum and determinants ------------------------------------------------------------------------------------------

for equation, left, right in (
        ("ij,jk->ik", [2, 3], [3, 4]), ("bij,bkj->bki", [2, 3, 4], [2, 5, 4]), ("bhqd,bhkd->bhqk", [1, 2, 3, 4], [1, 2, 2, 4]),
        ("i,j->ij", [3], [4]), ("i,i->", [4], [4]), ("ij,ij->i", [2, 3], [2, 3]), ("ij,kl->jl", [2, 3], [4, 5]),
        ("...ij,...jk->...ik", [2, 1, 3, 4], [1, 5, 4, 2]), ("...i,i...->...", [2, 3], [3, 2]), ("ij,jk", [2, 3], [3, 4]),
        ("ba,cb", [2, 3], [4, 2]), ("ii,ij->j", [3, 3], [3, 2]), (",ij->ji", [], [2, 3])):
    operator(f"einsum_{equation.replace('...', '_').replace('->', '_to_').replace(',', '_')}",
             [node("Einsum", ["xp", "w"], ["y"], equation=equation)], left,
             lambda x, t: torch.einsum(equation, x, t["w"]), {"w": right})
for equation, shape in (("ij->ji", [2, 3]), ("ij->i", [2, 3]), ("ij->", [2, 3]), ("ii->i", [3, 3]), ("ii->", [3, 3]),
                        ("iij->j", [2, 2, 3]), ("...ij->...ji", [2, 3, 2]), ("bii", [2, 3, 3])):
    operator(f"einsum_{equation.replace('...', '_').replace('->', '_to_')}",
             [node("Einsum", ["xp"], ["y"], equation=equation)], shape, lambda x, t: torch.einsum(equation, x))
operator("einsum_three", [node("Einsum", ["xp", "v", "w"], ["y"], equation="ij,jk,lk->il")], [2, 3],
         lambda x, t: torch.einsum("ij,jk,lk->il", x, t["v"], t["w"]), {"v": [3, 4], "w": [2, 4]})
for size in (1, 2, 3, 5):
    operator(f"det_{size}", [node("Det", ["xp"], ["y"])], [2, size, size], lambda x, t: torch.det(x))
operator("det_of_one", [node("Det", ["xp"], ["y"])], [3, 3], lambda x, t: torch.det(x))

# --- Fourier transforms -----------------------------------------------------------------------------------------------

pairs = lambda x: torch.view_as_complex(x.contiguous())  # [..., 2] as complex numbers
real = torch.view_as_real
scalar = lambda v: np.array(v, np.int64)
operator("dft_real", [node("DFT", ["xp"], ["y"])], [2, 5, 1], lambda x, t: real(torch.fft.fft(x[..., 0])), opset=20)
operator("dft_onesided", [node("DFT", ["xp"], ["y"], onesided=1)], [2, 6, 1],
         lambda x, t: real(torch.fft.rfft(x[..., 0])), opset=20)
operator("dft_onesided_odd", [node("DFT", ["xp"], ["y"], onesided=1, axis=1)], [2, 5, 1],
         lambda x, t: real(torch.fft.rfft(x[..., 0])), opset=17)
operator("dft_axis", [node("DFT", ["xp", "", "a"], ["y"])], [4, 3, 2],
         lambda x, t: real(torch.fft.fft(pairs(x), dim=0)), constants={"a": scalar(0)}, opset=20)
for length in (3, 8):
    operator(f"dft_length_{length}", [node("DFT", ["xp", "n"], ["y"])], [2, 5, 2],
             lambda x, t: real(torch.fft.fft(pairs(x), length)), constants={"n": scalar(length)}, opset=20)
    operator(f"dft_inverse_{length}", [node("DFT", ["xp", "n"], ["y"], inverse=1)], [2, 5, 2],
             lambda x, t: real(torch.fft.ifft(pairs(x), length)), constants={"n": scalar(length)}, opset=20)
operator("dft_onesided_length", [node("DFT", ["xp", "n"], ["y"], onesided=1)], [2, 5, 1],
         lambda x, t: real(torch.fft.rfft(x[..., 0], 8)), constants={"n": scalar(8)}, opset=20)


def frames_of(x, length, step):
    return torch.stack([x[:, i:i + length] for i in range(0, x.shape[1] - length + 1, step)], 1)


operator("stft", [node("STFT", ["xp", "step", "w"], ["y"])], [2, 11, 1],
         lambda x, t: real(torch.fft.rfft(frames_of(x[..., 0], 4, 3) * t["w"])), {"w": [4]},
         constants={"step": scalar(3)}, opset=17)
operator("stft_length", [node("STFT", ["xp", "step", "", "n"], ["y"], onesided=0)], [2, 9, 1],
         lambda x, t: real(torch.fft.fft(frames_of(x[..., 0], 5, 2))),
         constants={"step": scalar(2), "n": scalar(5)}, opset=17)

# --- Quantisation -----------------------------------------------------------------------------------------------------

def fake_quantise(name, shape, scale, zero, low, high, axis=None):
    kind = np.int8 if low < 0 else np.uint8
    constants = {"s": np.asarray(scale, np.float32)}
    if zero is not None:
        constants["z"] = np.asarray(zero, kind)
    inputs = list(constants)
    if axis is None:
        reference = lambda x, t: torch.fake_quantize_per_tensor_affine(x, float(scale), int(zero or 0), low, high)
    else:
        reference = lambda x, t: torch.fake_quantize_per_channel_affine(
            x, torch.tensor(scale), torch.tensor(zero, dtype=torch.int32), axis, low, high)
    attributes = {} if axis is None else {"axis": axis}
    operator(name, [node("QuantizeLinear", ["xp"] + inputs, ["q"], **attributes),
                    node("DequantizeLinear", ["q"] + inputs, ["y"], **attributes)], shape, reference,
             {"p": torch.zeros(shape)}, constants, x=torch.randn(shape) * 2)


torch.manual_seed(51)
fake_quantise("quantize_int8", [3, 8], 0.01, 3, -128, 127)
fake_quantise("quantize_uint8", [3, 8], 0.015, 100, 0, 255)
fake_quantise("quantize_no_zero_point", [3, 8], 0.01, None, 0, 255)
fake_quantise("quantize_per_axis", [2, 3, 4], [0.01, 0.02, 0.005], [0, 5, -7], -128, 127, axis=1)

# --- Sampling ---------------------------------------------------------------------------------------------------------

for kind, (image, block, options) in {
        "plain": ((5, 4), (2, 3), {}), "strided": ((6, 7), (2, 2), dict(stride=(2, 3))),
        "dilated": ((7, 6), (2, 3), dict(dilation=(2, 1), padding=1)),
        "padded": ((4, 5), (3, 3), dict(padding=(1, 2), stride=2))}.items():
    pair = lambda key, otherwise: list(np.broadcast_to(options.get(key, otherwise), 2))
    columns = F.unfold(torch.zeros(2, 3, *image), block, **options).shape
    operator(f"col2im_{kind}", [node("Col2Im", ["xp", "image", "block"], ["y"], strides=[int(v) for v in pair("stride", 1)],
                                     dilations=[int(v) for v in pair("dilation", 1)],
                                     pads=[int(v) for v in pair("padding", 0)] * 2)], list(columns),
             lambda x, t: F.fold(x, image, block, **options), constants={"image": ints(*image), "block": ints(*block)},
             opset=18)
for padding in ("zeros", "border", "reflection"):
    for align in (0, 1):
        for mode in ("linear", "nearest", "cubic"):
            torch.manual_seed(2000 + len(cases))
            own = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
            grid = torch.rand(2, 3, 4, 2) * 3.4 - 1.7
            operator(f"grid_sample_{mode}_{padding}_{align}",
                     [node("GridSample", ["xp", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=align)],
                     [2, 3, 4, 5], lambda x, t: F.grid_sample(x, t["grid"], own, padding, bool(align)), {"grid": grid},
                     opset=20)
torch.manual_seed(2100)
operator("grid_sample_opset16", [node("GridSample", ["xp", "grid"], ["y"])], [1, 2, 3, 3],
         lambda x, t: F.grid_sample(x, t["grid"], align_corners=False), {"grid": torch.rand(1, 2, 2, 2) * 2 - 1})
operator("grid_sample_3d", [node("GridSample", ["xp", "grid"], ["y"], padding_mode="border")], [1, 2, 3, 4, 2],
         lambda x, t: F.grid_sample(x, t["grid"], padding_mode="border", align_corners=False),
         {"grid": torch.rand(1, 2, 2, 2, 3) * 3 - 1.5}, opset=20)
for align in (0, 1):
    operator(f"affine_grid_{align}", [node("AffineGrid", ["xp", "size"], ["y"], align_corners=align)], [2, 2, 3],
             lambda x, t: F.affine_grid(x, [2, 3, 4, 5], bool(align)), constants={"size": ints(2, 3, 4, 5)}, opset=20)
operator("affine_grid_3d", [node("AffineGrid", ["xp", "size"], ["y"])], [1, 3, 4],
         lambda x, t: F.affine_grid(x, [1, 3, 2, 3, 4], False), constants={"size": ints(1, 3, 2, 3, 4)}, opset=20)
operator("center_crop_pad", [node("CenterCropPad", ["xp", "shape"], ["y"])], [2, 5, 4],
         lambda x, t: F.pad(x[:, 1:4], [1, 1]), constants={"shape": ints(2, 3, 6)}, opset=18)

# --- Recurrent networks -----------------------------------------------------------------------------------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
PLAIN = {"Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Relu": torch.relu, "Softsign": F.softsign, "Softplus": F.softplus}


def one_direction(op, x, w, r, b, p, h, c, activations, reset_inside, input_forget):
    """ONNX's equations, step by step; x [T, B, I] in the order of processing."""
    act = [PLAIN[a] for a in activations]
    size, outputs = r.shape[1], []
    gate = lambda m, i: m[i * size:(i + 1) * size]
    for xt in x:
        wx = lambda i: xt @ gate(w, i).T + gate(b, i)
        rh = lambda i, state: state @ gate(r, i).T + gate(b[b.shape[0] // 2:], i)
        peep = lambda i, state: state * gate(p, i) if p is not None else 0
        if op == "LSTM":
            i = act[0](wx(0) + rh(0, h) + peep(0, c))
            f = 1 - i if input_forget else act[0](wx(2) + rh(2, h) + peep(2, c))
            c = f * c + i * act[1](wx(3) + rh(3, h))
            h = act[0](wx(1) + rh(1, h) + peep(1, c)) * act[2](c)
        elif op == "GRU":
            z, reset = act[0](wx(0) + rh(0, h)), act[0](wx(1) + rh(1, h))
            h = (1 - z) * act[1](wx(2) + (reset * rh(2, h) if reset_inside else rh(2, reset * h))) + z * h
        else:
            h = act[0](wx(0) + rh(0, h))
        outputs.append(h)
    return torch.stack(outputs), h, c


def recurrent(op, x, t, direction="forward", activations=None, reset_inside=False, input_forget=False, batch_first=False):
    ways = ["forward", "reverse"] if direction == "bidirectional" else [direction]
    default = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]
    activations = activations or default * len(ways)
    size = t["r"].shape[2]
    x = x.transpose(0, 1) if batch_first else x
    results = []
    for d, way in enumerate(ways):
        zeros = torch.zeros(x.shape[1], size)
        state = lambda key: (t[key][:, d] if batch_first else t[key][d]) if key in t else zeros
        b = t["b"][d] if "b" in t else torch.zeros(2 * GATES[op] * size)
        p = t["q"][d] if "q" in t else None
        y, h, c = one_direction(op, x.flip(0) if way == "reverse" else x, t["w"][d], t["r"][d], b, p, state("h"), state("c"),
                                activations[d * len(default):(d + 1) * len(default)], reset_inside, input_forget)
        results.append((y.flip(0) if way == "reverse" else y, h, c))
    y, h, c = (torch.stack([r[i] for r in results], 1 if i == 0 else 0) for i in range(3))
    return (y.permute(2, 0, 1, 3), h.transpose(0, 1), c.transpose(0, 1)) if batch_first else (y, h, c)


def check_against_torch(op, module, reset_inside):  # the equations above are PyTorch's, gates in another order
    torch.manual_seed(0)
    net, x = module(3, 2, bidirectional=True), torch.randn(4, 2, 3)
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}[op]
    mixed = lambda v: torch.cat([v.reshape(GATES[op], 2, *v.shape[1:])[i] for i in order])
    both = lambda key: torch.stack([mixed(getattr(net, f"{key}_l0{side}")) for side in ("", "_reverse")])
    t = {"w": both("weight_ih"), "r": both("weight_hh"), "b": torch.cat([both("bias_ih"), both("bias_hh")], 1)}
    y = recurrent(op, x, t, "bidirectional", reset_inside=reset_inside)[0]
    assert torch.allclose(y.transpose(1, 2).reshape(4, 2, 4), net(x)[0], atol=1e-6), op


check_against_torch("LSTM", nn.LSTM, False)
check_against_torch("GRU", nn.GRU, True)
check_against_torch("RNN", nn.RNN, False)


def recurrent_case(name, op, steps=3, batch=2, width=3, size=2, direction="forward", bias=True, states=False,
                   peepholes=False, outputs="yhc", lengths=None, batch_first=False, opset=14, **attributes):
    ways = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * size
    parameters = {"w": [ways, rows, width], "r": [ways, rows, size]}
    if bias:
        parameters["b"] = [ways, 2 * rows]
    if states:
        parameters["h"] = [batch, ways, size] if batch_first else [ways, batch, size]
        if op == "LSTM":
            parameters["c"] = parameters["h"]
    if peepholes:
        parameters["q"] = [ways, 3 * size]
    if op != "LSTM":
        outputs = outputs.replace("c", "")
    inputs = ["xp", "w", "r", "b" if bias else "", "lengths" if lengths else "", "h" if states else "",
              "c" if states and op == "LSTM" else "", "q" if peepholes else ""]
    while not inputs[-1]:
        inputs.pop()
    given = dict(attributes, **({"direction": direction} if ways == 2 or direction == "reverse" else {}),
                 **({"layout": 1} if batch_first else {}))
    nodes = [node(op, inputs, [f"o{k}" if k in outputs else "" for k in ("yhc" if op == "LSTM" else "yh")], hidden_size=size,
                  **given)]
    for k in outputs:  # a weighted sum would do; one flat output compares all of them
        nodes.append(node("Reshape", [f"o{k}", "flat"], [f"f{k}"]))
    nodes.append(node("Concat", [f"f{k}" for k in outputs], ["y"], axis=0))

    def reference(x, t):
        results = dict(zip("yhc", recurrent(op, x, t, direction, attributes.get("activations"),
                                            attributes.get("linear_before_reset", 0), attributes.get("input_forget", 0),
                                            batch_first)))
        return torch.cat([results[k].reshape(-1) for k in outputs])

    constants = {"flat": ints(-1)}
    if lengths:
        constants["lengths"] = np.array(lengths, np.int32)
    operator(name, nodes, [batch, steps, width] if batch_first else [steps, batch, width], reference, parameters,
             constants, opset=opset)


for op in GATES:
    low = op.lower()
    for direction in ("forward", "reverse", "bidirectional"):
        recurrent_case(f"{low}_{direction}", op, direction=direction)
    recurrent_case(f"{low}_states", op, direction="bidirectional", states=True)
    recurrent_case(f"{low}_no_bias", op, bias=False)
    recurrent_case(f"{low}_one_step", op, steps=1, states=True)
    recurrent_case(f"{low}_last_only", op, outputs="h")
    recurrent_case(f"{low}_batch_first", op, direction="bidirectional", states=True, batch_first=True)
    recurrent_case(f"{low}_full_lengths", op, lengths=[3, 3])
    recurrent_case(f"{low}_sequence_of_40", op, steps=40, batch=1, outputs="y")
recurrent_case("lstm_peepholes", "LSTM", peepholes=True, states=True)
recurrent_case("lstm_peepholes_bidirectional", "LSTM", peepholes=True, direction="bidirectional")
recurrent_case("lstm_input_forget", "LSTM", input_forget=1, states=True)
recurrent_case("lstm_activations", "LSTM", direction="bidirectional",
               activations=["Sigmoid", "Softsign", "Tanh", "Softplus", "Tanh", "Relu"])
recurrent_case("gru_linear_before_reset", "GRU", linear_before_reset=1, states=True)
recurrent_case("gru_linear_before_reset_bidirectional", "GRU", linear_before_reset=1, direction="bidirectional")
recurrent_case("gru_linear_before_reset_no_bias", "GRU", linear_before_reset=1, bias=False)
recurrent_case("rnn_relu", "RNN", activations=["Relu"], states=True)

# --- Control flow -----------------------------------------------------------------------------------------------------

value = lambda name, *shape, of=TensorProto.FLOAT: helper.make_tensor_value_info(name, of, list(shape))
boolean = lambda name: value(name, of=TensorProto.BOOL)


def loop_body(nodes, carried, scanned, initializers=()):
    return helper.make_graph([node("Identity", ["go"], ["go_on"])] + nodes, "body",
                             [value("i", of=TensorProto.INT64), boolean("go")] + [value(c, 2, 3) for c in carried],
                             [boolean("go_on")] + [value(name, 2, 3) for name in scanned], list(initializers))


# Reads the carried value, a weight from outside and a weight of its own; gives out every round's value.
def loop_reference(rounds):
    def reference(x, t):
        rows, state = [], x
        for i in range(rounds):
            rows.append(torch.sigmoid(state * t["w"]))
            state = rows[-1] + x * float(i)
        return torch.cat([state[None], torch.stack(rows)], 0)
    return reference


for rounds in (1, 4):
    body = loop_body([node("Mul", ["state", "w"], ["m"]), node("Sigmoid", ["m"], ["row"]),
                      node("Cast", ["i"], ["number"], to=1), node("Mul", ["xp", "number"], ["add"]),
                      node("Add", ["row", "add"], ["next"])], ["state"], ["next", "row"])
    operator(f"loop_{rounds}", [node("Loop", ["n", "yes", "xp"], ["last", "rows"], body=body),
                                node("Unsqueeze", ["last", "axis"], ["line"]),
                                node("Concat", ["line", "rows"], ["y"], axis=0)], [2, 3], loop_reference(rounds),
             {"w": [2, 3]}, {"n": np.int64(rounds), "yes": np.bool_(True), "axis": ints(0)})
body = loop_body([node("Loop", ["two", "", "outer"], ["result"], body=helper.make_graph(
    [node("Identity", ["go2"], ["go2_on"]), node("Mul", ["inner", "outer"], ["product"])], "nested",
    [value("j", of=TensorProto.INT64), boolean("go2"), value("inner", 2, 3)],
    [boolean("go2_on"), value("product", 2, 3)]))], ["outer"], ["result"])
operator("loop_in_loop", [node("Loop", ["n", "yes", "xp"], ["y"], body=body)], [2, 3], lambda x, t: (x ** 3) ** 3,
         constants={"n": np.int64(2), "two": np.int64(2), "yes": np.bool_(True)})
scan_body = helper.make_graph([node("Mul", ["state", "w"], ["m"]), node("Add", ["m", "slice"], ["sum"]),
                               node("Sigmoid", ["sum"], ["next"]), node("Mul", ["next", "slice"], ["out"])], "body",
                              [value("state", 2), value("slice", 2)], [value("next", 2), value("out", 2)])


def scan_reference(x, t, back):  # x [2, T]: columns are the slices
    state, rows, columns = t["start"], [], list(x.T)
    for column in (columns[::-1] if back else columns):
        state = torch.sigmoid(state * t["w"] + column)
        rows.append(state * column)
    return torch.cat([state[None], torch.stack(rows[::-1] if back else rows)], 0)


for back in (0, 1):
    operator(f"scan_{'backwards' if back else 'forwards'}",
             [node("Scan", ["start", "xp"], ["last", "rows"], body=scan_body, num_scan_inputs=1, scan_input_axes=[1],
                   scan_input_directions=[back], scan_output_directions=[back]),
              node("Unsqueeze", ["last", "axis"], ["line"]), node("Concat", ["line", "rows"], ["y"], axis=0)], [2, 4],
             lambda x, t: scan_reference(x, t, back), {"w": [2], "start": [2]}, {"axis": ints(0)})
for taken in (True, False):
    branches = {f"{branch}_branch": helper.make_graph([node(op, ["xp", "w"], [branch])], branch, [], [value(branch, 2, 3)])
                for branch, op in (("then", "Mul"), ("else", "Add"))}
    operator(f"if_{str(taken).lower()}", [node("If", ["condition"], ["z"], **branches), node("Sigmoid", ["z"], ["y"])],
             [2, 3], lambda x, t: torch.sigmoid(x * t["w"] if taken else x + t["w"]), {"w": [2, 3]},
             {"condition": np.bool_(taken)})

# --- Matrix products --------------------------------------------------------------------------------------------------

for a in (0, 1):
    for b in (0, 1):
        operator(f"gemm_{a}{b}", [node("Gemm", ["xp", "w", "c"], ["y"], transA=a, transB=b, alpha=0.5, beta=2.0)],
                 [4, 3] if a else [3, 4],
                 lambda x, t: 0.5 * (x.T if a else x) @ (t["w"].T if b else t["w"]) + 2 * t["c"],
                 {"w": [5, 4] if b else [4, 5], "c": [5]})
for kind, shape in {"scalar": [], "row": [1, 5], "column": [3, 1], "full": [3, 5]}.items():
    operator(f"gemm_c_{kind}", [node("Gemm", ["xp", "w", "c"], ["y"])], [3, 4], lambda x, t: x @ t["w"] + t["c"],
             {"w": [4, 5], "c": shape})
operator("gemm_no_c", [node("Gemm", ["xp", "w"], ["y"])], [3, 4], lambda x, t: x @ t["w"], {"w": [4, 5]})
operator("gemm_beta_zero", [node("Gemm", ["xp", "w", "c"], ["y"], beta=0.0)], [3, 4],
         lambda x, t: x @ t["w"] + 0 * t["c"], {"w": [4, 5], "c": [5]})
for kind, (left, right) in {
        "2x2": ([3, 4], [4, 5]), "3x2": ([2, 3, 4], [4, 5]), "2x3": ([3, 4], [2, 4, 5]), "3x3": ([2, 3, 4], [2, 4, 5]),
        "4x4": ([2, 2, 3, 4], [2, 2, 4, 5]), "broadcast_right": ([2, 3, 3, 4], [3, 4, 5]),
        "broadcast_left": ([1, 3, 4], [3, 4, 2]), "broadcast_both": ([2, 1, 3, 4], [1, 3, 4, 2]),
        "ones_right": ([2, 3, 4], [1, 4, 5]), "rank_right": ([3, 4], [1, 1, 4, 5]),
        "1x2": ([4], [4, 5]), "2x1": ([3, 4], [4]), "1x1": ([4], [4]), "1x3": ([4], [2, 4, 5]), "3x1": ([2, 3, 4], [4]),
}.items():
    operator(f"matmul_{kind}", [node("MatMul", ["xp", "w"], ["y"])], left, lambda x, t: x @ t["w"], {"w": right})
operator("matmul_of_data", [node("Sigmoid", ["xp"], ["s"]), node("Transpose", ["xp"], ["r"], perm=[0, 2, 1]),
                            node("MatMul", ["s", "r"], ["y"])], [2, 3, 4], lambda x, t: x.sigmoid() @ x.transpose(1, 2))

# --- Reductions -------------------------------------------------------------------------------------------------------

for op, function in (("ReduceMean", torch.mean), ("ReduceSum", torch.sum)):
    def reduce_node(axes, keep):
        if op == "ReduceSum":
            return [node(op, ["xp"] + (["a"] if axes else []), ["y"], keepdims=keep)], {"a": ints(*axes)} if axes else {}
        return [node(op, ["xp"], ["y"], keepdims=keep, **({"axes": axes} if axes else {}))], {}
    for kind, axes, keep in (("keep", [1], 1), ("drop", [0, -1], 0), ("all", [], 0), ("all_keep", [], 1)):
        nodes, constants = reduce_node(axes, keep)
        operator(f"{op.lower()}_{kind}", nodes, [2, 3, 4],
                 lambda x, t: function(x, axes or [0, 1, 2], keepdim=bool(keep)), constants=constants, opset=13)

operator("reduce_sum_nothing", [node("ReduceSum", ["xp"], ["y"], noop_with_empty_axes=1)], [2, 3], lambda x, t: x * 1)
operator("reduce_mean_axes_input", [node("ReduceMean", ["xp", "a"], ["y"], keepdims=0)], [2, 3, 4],
         lambda x, t: x.mean((0, 1)), constants={"a": ints(-2, 0)}, opset=18)

def reduced(name, op, reference, shape, axes, keep=1, x=None, opset=18, **attributes):
    inputs = ["xp"] + ([] if axes is None else ["a"])
    operator(name, [node(op, inputs, ["y"], keepdims=keep, **attributes)], shape, lambda x, t: reference(x),
             {} if x is None else {"p": torch.zeros(shape)}, {} if axes is None else {"a": ints(*axes)}, x=x, opset=opset)


some = lambda *shape: torch.randint(-2, 3, shape).float()  # integers: ties and zeros
torch.manual_seed(31)
for op, extremum in (("ReduceMax", torch.amax), ("ReduceMin", torch.amin)):
    reduced(f"{op.lower()}_keep", op, lambda x: extremum(x, 1, keepdim=True), [2, 3, 4], [1])
    reduced(f"{op.lower()}_ties", op, lambda x: extremum(x, (0, 2)), [2, 3, 4], [-1, 0], 0, some(2, 3, 4))
    reduced(f"{op.lower()}_all", op, lambda x: extremum(x, (0, 1)), [2, 3], None, 0)
    reduced(f"{op.lower()}_nothing", op, lambda x: x * 1, [2, 3], [], 1, noop_with_empty_axes=1)
reduced("reduceprod_keep", "ReduceProd", lambda x: x.prod(1, keepdim=True), [2, 3, 4], [1])
reduced("reduceprod_zeros", "ReduceProd", lambda x: x.prod(-1), [3, 3], [-1], 0,
        torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 2.0], [1.0, 2.0, 4.0]]))
reduced("reduceprod_two_axes", "ReduceProd", lambda x: x.prod(2).prod(0), [2, 3, 2], [0, 2], 0, some(2, 3, 2))
reduced("reducel1", "ReduceL1", lambda x: x.abs().sum((0, 2)), [2, 3, 4], [0, -1], 0, some(2, 3, 4))
reduced("reducel2", "ReduceL2", lambda x: x.norm(dim=1, keepdim=True), [2, 3, 4], [1])
reduced("reducel2_of_zero", "ReduceL2", lambda x: x.norm(dim=1), [2, 3], [1], 0,
        torch.tensor([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]]))
reduced("reducelogsum", "ReduceLogSum", lambda x: x.sum((0, 2)).log(), [2, 3, 2], [0, 2], 0, torch.rand(2, 3, 2) + 0.2)
reduced("reducelogsumexp", "ReduceLogSumExp", lambda x: x.logsumexp((0, 2), True), [2, 3, 4], [0, 2])
reduced("reducelogsumexp_all", "ReduceLogSumExp", lambda x: x.logsumexp((0, 1)), [2, 3], None, 0)
reduced("reducesumsquare", "ReduceSumSquare", lambda x: x.square().sum(-2), [2, 3, 4], [-2], 0)
reduced("reducel1_nothing", "ReduceL1", torch.abs, [2, 3], None, 1, noop_with_empty_axes=1)
reduced("reducesumsquare_nothing", "ReduceSumSquare", torch.square, [2, 3], [], 1, noop_with_empty_axes=1)
for exclusive in (0, 1):
    for reverse in (0, 1):
        def cumulated(x):
            turned = x.flip(1) if reverse else x
            sums = turned.cumsum(1) - (turned if exclusive else 0)
            return sums.flip(1) if reverse else sums
        operator(f"cumsum_{exclusive}{reverse}", [node("CumSum", ["xp", "axis"], ["y"], exclusive=exclusive, reverse=reverse)],
                 [2, 4, 2], lambda x, t: cumulated(x), constants={"axis": np.int64(1)})
operator("lp_normalization_2", [node("LpNormalization", ["xp"], ["y"])], [2, 3, 4], lambda x, t: F.normalize(x, 2, -1),
         run_opset=21)
operator("lp_normalization_1", [node("LpNormalization", ["xp"], ["y"], axis=1, p=1)], [2, 3, 4],
         lambda x, t: F.normalize(x, 1, 1), run_opset=21)
operator("top_k", [node("TopK", ["xp", "k"], ["y", "i"], axis=1)], [2, 5, 3], lambda x, t: x.topk(2, 1).values,
         constants={"k": ints(2)})
operator("top_k_smallest", [node("TopK", ["xp", "k"], ["y", "i"], largest=0)], [3, 6],
         lambda x, t: x.topk(4, largest=False).values, constants={"k": ints(4)})

# --- Losses -----------------------------------------------------------------------------------------------------------

logits = lambda shape: dict(nodes=[node("Identity", ["xp"], ["y"])], x_shape=shape, reference=lambda x, t: x * 1)
operator("cross_entropy_matrix", **logits([4, 5]), loss="cross_entropy")
operator("cross_entropy_sequence", **logits([2, 3, 5]), loss="cross_entropy", class_axis=2)
operator("cross_entropy_map", **logits([2, 4, 3, 2]), loss="cross_entropy", class_axis=1)
operator("sum_of_output", **logits([2, 3]), loss="sum")
# The softmax at the end is the loss's own: PyTorch's cross entropy of what goes into it.
operator("cross_entropy_of_softmax", [node("Softmax", ["xp"], ["y"], axis=1)], [4, 5], lambda x, t: x * 1,
         loss="cross_entropy")
operator("cross_entropy_of_log_softmax", [node("LogSoftmax", ["xp"], ["y"], axis=1)], [4, 5], lambda x, t: x * 1,
         loss="cross_entropy")

# Loss operators in the model itself; training sums their output.
torch.manual_seed(61)
for kind, shape, reduction, weighted, ignored in (
        ("mean", [4, 3], "mean", False, None), ("weighted", [4, 3], "mean", True, None),
        ("ignored", [2, 3, 4], "mean", False, -1), ("weighted_ignored", [2, 3, 2, 2], "mean", True, 1),
        ("sum", [4, 3], "sum", True, 0), ("none", [2, 3, 2], "none", True, None)):
    labels = torch.randint(0, 3, [shape[0], *shape[2:]])
    if ignored is not None:
        labels.flatten()[::3] = ignored
    weights = torch.tensor([0.5, 2.0, 1.5]) if weighted else None
    constants = {"l": labels.numpy(), **({"c": weights.numpy()} if weighted else {})}
    inputs = ["xp", "l"] + (["c"] if weighted else [])
    attributes = {"reduction": reduction, **({} if ignored is None else {"ignore_index": ignored})}
    ignore = -100 if ignored is None else ignored
    for op, loss_name, reference in (("SoftmaxCrossEntropyLoss", "softmax_cross_entropy_loss", F.cross_entropy),
                                     ("NegativeLogLikelihoodLoss", "negative_log_likelihood_loss", F.nll_loss)):
        operator(f"{loss_name}_{kind}", [node(op, inputs, ["l1"], **attributes), node("Sin", ["l1"], ["y"])], shape,
                 lambda x, t: reference(x, labels, weights, ignore_index=ignore, reduction=reduction).sin(),
                 constants=constants, loss="sum", buffers={"c": weights} if weighted else {})
labels = torch.tensor([0, 2])
operator("softmax_cross_entropy_loss_both", [node("SoftmaxCrossEntropyLoss", ["xp", "l"], ["l1", "g"]),
                                             node("Exp", ["g"], ["e"]), node("Add", ["e", "l1"], ["y"])], [2, 3],
         lambda x, t: x.softmax(1) + F.cross_entropy(x, labels), constants={"l": labels.numpy()})


# --- Networks, as torch.onnx exports them -----------------------------------------------------------------------------

class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.second(torch.sigmoid(self.first(x)))


class Residual(nn.Module):  # a small ResNet: convolution, batch norm, max pooling, a residual sum, a strided shortcut
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.inner, self.inner_norm = nn.Conv2d(4, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4)
        self.shortcut, self.shortcut_norm = nn.Conv2d(4, 4, 1, stride=2, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.relu(self.inner_norm(self.inner(x)) + self.shortcut_norm(self.shortcut(x)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Inverted(nn.Module):  # a MobileNetV2 block: expansion, depthwise, linear projection, ReLU6
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6(),
                                  nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False), nn.BatchNorm2d(6), nn.ReLU6(),
                                  nn.Conv2d(6, 3, 1, bias=False), nn.BatchNorm2d(3))
        self.head = nn.Linear(3, 4)

    def forward(self, x):
        return self.head((x + self.body(x)).mean([2, 3]))


class Dense(nn.Module):  # concatenations whose parts are read again, as in DenseNet; average pooling
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 2, 3, padding=1), nn.Conv2d(4, 3, 3, padding=1)
        self.head = nn.Conv2d(7, 4, 1)

    def forward(self, x):
        one = torch.cat([x, self.a(x)], 1)
        two = torch.cat([one, F.relu(self.b(one))], 1)
        return F.avg_pool2d(self.head(two), 2)


class Tied(nn.Module):  # one weight in two places: its gradients are summed
    def __init__(self):
        super().__init__()
        self.shared, self.out = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(torch.sigmoid(self.shared(torch.sigmoid(self.shared(x)))))


class Decoder(nn.Module):  # up-sampling convolutions and a regression
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.out = nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x):
        return torch.sigmoid(self.out(F.relu(self.norm(self.up(x)))))


def seeded(number, module):
    torch.manual_seed(number)
    return module()


def data(number, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(number))


torch.manual_seed(7)
every = ("sgd", "momentum", "adam")
network("net_perceptron", seeded(1, Perceptron), data(1, 5, 6), 13, optimizers=every)
network("net_residual", seeded(2, Residual), data(2, 3, 2, 8, 8), 14, optimizers=every)
network("net_inverted", seeded(3, Inverted), data(3, 4, 3, 4, 4), 15, optimizers=("adam",))
network("net_dense", seeded(4, Dense), data(4, 2, 2, 4, 4), 16, optimizers=("sgd",))
network("net_tied", seeded(5, Tied), data(5, 4, 5), 13, optimizers=("momentum",))
network("net_decoder", seeded(6, Decoder), data(6, 2, 3, 3, 3), 16, loss="mse", optimizers=("sgd",))

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures.json")
with open(path, "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
print(len(cases), "cases,", os.path.getsize(path), "bytes")
