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
             mask_gradients=False):
    """forward(x) -> y reads `parameters` and `buffers` (name -> tensor). mask_gradients: PyTorch's gradients hold for
    the elements that the model's dropout keeps, the others' are zero."""
    buffers = buffers or {}
    trained = {k: v for k, v in parameters.items() if v.requires_grad}
    case = {"name": name, "model": base64.b64encode(model).decode(), "loss": loss, "frozen": frozen,
            "compare_loss": compare_loss, "mask_gradients": mask_gradients,
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
    operator(f"lp_pool_{p}", [node("LpPool", ["xp"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, p=p)],
             [1, 2, 7, 6], lambda x, t: F.conv2d(x.abs().pow(p), torch.ones(2, 1, 3, 3), None, 2, 1, 1, 2).pow(1 / p))
operator("lp_pool_1d_dilated", [node("LpPool", ["xp"], ["y"], kernel_shape=[2], dilations=[2], strides=[2], ceil_mode=1)],
         [2, 3, 8], lambda x, t: F.conv1d(F.pad(x * x, [0, 1]), torch.ones(3, 1, 2), None, 2, 0, 2, 3).sqrt(), opset=18)
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
