// The sliding window of a convolution or pooling along each spatial axis, auto_pad resolved to explicit pads.
//
// A window relates a large side (the input of Conv and pooling, the output of ConvTranspose) to a small one: element i
// of the small side meets the large side's elements i * stride + k * dilation - begin, 0 <= k < kernel.
#pragma once

#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/saturating.h"

namespace monet {

struct WindowAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t begin = 0;  // pad before the first element of the large side
  int64_t large = 1;
  int64_t small = 1;
  // Extent that the windows cover together.
  int64_t covered() const {
    return saturating_add(saturating_multiply(small - 1, stride), saturating_multiply(dilation, kernel - 1) + 1);
  }
  // The pad after the last element that makes the windows end exactly there. Negative: that many elements at the end of
  // the large side are met by no window (a stride that does not divide the extent).
  int64_t end() const { return covered() - begin - large; }
};
using Window = std::vector<WindowAxis>;

// Both functions return an empty window when attributes and shapes do not fit each other or make no sense (a stride of
// 0, an empty axis, a negative pad).
//
// Conv and pooling: `large` and `small` are the shapes of input and output with their first two dimensions. `kernel`:
// spatial sizes.
Window conv_window(const Node& node, const Shape& large, const Shape& small, const Shape& kernel);
// ConvTranspose: `small` and `large` are the shapes of input and output.
Window conv_transpose_window(const Node& node, const Shape& large, const Shape& small, const Shape& kernel);

// Attributes of a Conv that reads the large side, of its transpose, ...: one value per axis.
std::vector<int64_t> strides(const Window& window);
std::vector<int64_t> dilations(const Window& window);
// ONNX order: all begins, then all ends. Negative ends become 0: the caller slices or pads the remainder.
std::vector<int64_t> pads(const Window& window);

}  // namespace monet
