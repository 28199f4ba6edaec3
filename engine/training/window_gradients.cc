#include "engine/training/window_gradients.h"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

// Cuts the elements at the end of the large side that no window meets, on the axes where `cut` says so.
template <typename Predicate>
TensorId cut_unmet(Builder& b, TensorId large, Window& window, Predicate cut) {
  std::vector<int64_t> axes, starts, ends;
  for (size_t i = 0; i < window.size(); ++i) {
    WindowAxis& axis = window[i];
    if (axis.end() >= 0 || !cut(axis)) continue;
    axis.large += axis.end();
    axes.push_back(static_cast<int64_t>(i) + 2);
    starts.push_back(0);
    ends.push_back(axis.large);
  }
  return axes.empty() ? large : b.slice(large, axes, starts, ends);
}

std::vector<int64_t> swap_first_two(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1]);
  return perm;
}

}  // namespace

void refuse_window(Backward& g) {
  g.refuse("its kernel, strides, dilations and pads do not fit its shapes", "check the attributes of the node");
}

TensorId spread(Builder& b, TensorId small, TensorId weight, const Window& window, int64_t group,
                const Shape& large_shape) {
  std::vector<int64_t> output_padding;
  for (const WindowAxis& axis : window) output_padding.push_back(std::max<int64_t>(0, -axis.end()));
  return b.emit("ConvTranspose", {small, weight}, large_shape,
                {{"strides", strides(window)},
                 {"dilations", dilations(window)},
                 {"pads", pads(window)},
                 {"output_padding", output_padding},
                 {"group", group}});
}

TensorId gather(Builder& b, TensorId large, TensorId weight, const Window& window, int64_t group,
                const Shape& small_shape) {
  Window exact = window;
  // Conv rounds its output size down: only a remainder of a whole stride would make it one too large.
  large = cut_unmet(b, large, exact, [](const WindowAxis& axis) { return -axis.end() >= axis.stride; });
  return b.emit(
      "Conv", {large, weight}, small_shape,
      {{"strides", strides(exact)}, {"dilations", dilations(exact)}, {"pads", pads(exact)}, {"group", group}});
}

// dW[k, c, f] = sum over n, i of small[n, k, i] * large[n, c, i * stride + f * dilation - begin]: a Conv whose channels
// are the samples, whose kernel is the small side, with stride and dilation exchanged. With groups, the samples of
// group j are made the input channels of group j, so one grouped Conv yields all of them.
TensorId window_weight_gradient(Builder& b, TensorId large, TensorId small, const Window& window, int64_t group,
                                const Shape& weight_shape) {
  Window exact = window;
  large = cut_unmet(b, large, exact, [](const WindowAxis&) { return true; });
  std::vector<int64_t> swap = swap_first_two(weight_shape.size());
  if (group == 1) {
    large = b.transpose(large, swap);
  } else {
    Shape shape = b.shape(large);
    int64_t samples = shape[0], channels = shape[1] / group;
    Shape split = {samples, group, channels}, merged = {channels, group * samples};
    split.insert(split.end(), shape.begin() + 2, shape.end());
    merged.insert(merged.end(), shape.begin() + 2, shape.end());
    std::vector<int64_t> perm(split.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[2]);
    large = b.reshape(b.transpose(b.reshape(large, split), perm), merged);
  }
  small = b.transpose(small, swap);
  Shape swapped = weight_shape;
  std::swap(swapped[0], swapped[1]);
  TensorId gradient =
      b.emit("Conv", {large, small}, swapped,
             {{"strides", dilations(exact)}, {"dilations", strides(exact)}, {"pads", pads(exact)}, {"group", group}});
  return b.transpose(gradient, swap);
}

}  // namespace monet
