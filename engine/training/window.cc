#include "engine/training/window.h"

#include <algorithm>

namespace monet {

namespace {

Window basic_window(const Node& node, const Shape& large, const Shape& small, const Shape& kernel) {
  size_t axes = kernel.size();
  std::vector<int64_t> ones(axes, 1);
  std::vector<int64_t> strides = attribute(node, "strides", ones);
  std::vector<int64_t> dilations = attribute(node, "dilations", ones);
  std::vector<int64_t> pads = attribute(node, "pads", std::vector<int64_t>(2 * axes, 0));
  if (large.size() != axes + 2 || small.size() != axes + 2) return {};
  if (strides.size() != axes || dilations.size() != axes || pads.size() != 2 * axes) return {};
  Window window(axes);
  for (size_t i = 0; i < axes; ++i) {
    WindowAxis& axis = window[i];
    axis = {kernel[i], strides[i], dilations[i], pads[i], large[i + 2], small[i + 2]};
    if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.begin < 0 || pads[axes + i] < 0) return {};
    if (axis.large < 1 || axis.small < 1) return {};
  }
  return window;
}

bool is_same(const std::string& auto_pad) { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }

}  // namespace

Window conv_window(const Node& node, const Shape& large, const Shape& small, const Shape& kernel) {
  Window window = basic_window(node, large, small, kernel);
  std::string auto_pad = attribute(node, "auto_pad", "NOTSET");
  for (WindowAxis& axis : window) {
    if (is_same(auto_pad)) {
      int64_t total = std::max<int64_t>(0, axis.covered() - axis.large);
      axis.begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else if (auto_pad == "VALID") {
      axis.begin = 0;
    }
  }
  return window;
}

Window conv_transpose_window(const Node& node, const Shape& large, const Shape& small, const Shape& kernel) {
  Window window = basic_window(node, large, small, kernel);
  std::string auto_pad = attribute(node, "auto_pad", "NOTSET");
  std::vector<int64_t> extra = attribute(node, "output_padding", std::vector<int64_t>(kernel.size(), 0));
  if (extra.size() != kernel.size()) return {};
  // A given output shape overrides the pads (ONNX's ConvTranspose: the odd one goes to the end for SAME_UPPER only).
  bool computed = is_same(auto_pad) || find_attribute(node, "output_shape");
  for (size_t i = 0; i < window.size(); ++i) {
    WindowAxis& axis = window[i];
    if (computed) {
      int64_t total = std::max<int64_t>(0, axis.covered() + extra[i] - axis.large);
      axis.begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else if (auto_pad == "VALID") {
      axis.begin = 0;
    }
  }
  return window;
}

std::vector<int64_t> strides(const Window& window) {
  std::vector<int64_t> result;
  for (const WindowAxis& axis : window) result.push_back(axis.stride);
  return result;
}

std::vector<int64_t> dilations(const Window& window) {
  std::vector<int64_t> result;
  for (const WindowAxis& axis : window) result.push_back(axis.dilation);
  return result;
}

std::vector<int64_t> pads(const Window& window) {
  std::vector<int64_t> result;
  for (const WindowAxis& axis : window) result.push_back(axis.begin);
  for (const WindowAxis& axis : window) result.push_back(std::max<int64_t>(0, axis.end()));
  return result;
}

}  // namespace monet
