// Gradient of Col2Im: every column element reads the image element that it was added to (im2col).
#include "engine/ir/saturating.h"
#include "engine/training/gradient_rules.h"

namespace monet {

// Axis by axis, since blocks are products: positions of all block elements at all places, by Gather; then block axes
// are brought before place axes.
void col2im_gradient(Backward& g) {
  constexpr int64_t kMaxPositions = int64_t{1} << 20;  // along one axis; they are constants of the graph
  Builder& b = g.b;
  TensorId dx = g.gradient();
  std::vector<int64_t> image = integers(g.tensor(g.input(1))), block = integers(g.tensor(g.input(2)));
  int64_t axes = static_cast<int64_t>(block.size()), samples = b.shape(dx)[0], channels = b.shape(dx)[1];
  std::vector<int64_t> ones(axes, 1);
  std::vector<int64_t> strides = attribute(g.node, "strides", ones), dilations = attribute(g.node, "dilations", ones);
  std::vector<int64_t> pads = attribute(g.node, "pads", std::vector<int64_t>(2 * axes, 0));
  auto refuse = [&] { g.refuse("its shapes are not constant or do not fit", "export the model with fixed shapes"); };
  if (axes < 1 || image.size() != block.size() || static_cast<int64_t>(b.shape(dx).size()) != axes + 2 ||
      strides.size() != block.size() || dilations.size() != block.size() || pads.size() != 2 * block.size())
    return refuse();
  std::vector<int64_t> padding(2 * (axes + 2), 0);
  Shape padded = b.shape(dx), split = {samples, channels};
  bool pad = false;
  for (int64_t i = 0; i < axes; ++i) {
    if (block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[axes + i] < 0) return refuse();
    padding[i + 2] = pads[i];
    padding[axes + i + 4] = pads[axes + i];
    padded[i + 2] = saturating_add(padded[i + 2], saturating_add(pads[i], pads[axes + i]));
    pad = pad || pads[i] != 0 || pads[axes + i] != 0;
  }
  if (pad) dx = b.emit("Pad", {dx, b.ints(padding)}, padded);
  int64_t places = 1;
  for (int64_t i = 0; i < axes; ++i) {
    int64_t reach = padded[i + 2] - saturating_multiply(dilations[i], block[i] - 1) - 1;
    if (reach < 0) return refuse();
    int64_t count = reach / strides[i] + 1;
    if (saturating_multiply(block[i], count) > kMaxPositions) return refuse();
    std::vector<int64_t> positions;
    for (int64_t k = 0; k < block[i]; ++k)
      for (int64_t p = 0; p < count; ++p) positions.push_back(p * strides[i] + k * dilations[i]);
    Shape shape = b.shape(dx);
    shape[i + 2] = static_cast<int64_t>(positions.size());
    dx = b.emit("Gather", {dx, b.ints(positions)}, shape, {{"axis", i + 2}});
    split.push_back(block[i]);
    split.push_back(count);
    places *= count;
  }
  std::vector<int64_t> perm = {0, 1};
  for (int64_t i = 0; i < axes; ++i) perm.push_back(2 + 2 * i);
  for (int64_t i = 0; i < axes; ++i) perm.push_back(3 + 2 * i);
  Shape x = g.shape(g.input(0));
  if (x != Shape{samples, channels * elements(block), places}) return refuse();
  g.give(0, b.reshape(b.transpose(b.reshape(dx, split), perm), x));
}

}  // namespace monet
