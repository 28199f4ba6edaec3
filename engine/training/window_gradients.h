// The two gradients of a sliding-window contraction in ONNX operators, shared by Conv, ConvTranspose and AveragePool
// (Dumoulin and Visin, A guide to convolution arithmetic for deep learning, arXiv 1603.07285).
#pragma once

#include "engine/training/builder.h"
#include "engine/training/gradient_rules.h"
#include "engine/training/window.h"

namespace monet {

// What a rule does with an empty window.
void refuse_window(Backward& g);

// Small side [N, K, ...] -> large side [N, C, ...] by ConvTranspose: the input gradient of Conv. `weight`
// [K, C/group, kernel...].
TensorId spread(Builder& b, TensorId small, TensorId weight, const Window& window, int64_t group,
                const Shape& large_shape);

// Large side [N, C, ...] -> small side [N, K, ...] by Conv: the input gradient of ConvTranspose.
TensorId gather(Builder& b, TensorId large, TensorId weight, const Window& window, int64_t group,
                const Shape& small_shape);

// Gradient of a weight [K, C/group, kernel...] that connects large side [N, C, ...] and small side [N, K, ...].
TensorId window_weight_gradient(Builder& b, TensorId large, TensorId small, const Window& window, int64_t group,
                                const Shape& weight_shape);

}  // namespace monet
