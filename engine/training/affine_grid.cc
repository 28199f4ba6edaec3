// Gradient of AffineGrid (Jaderberg et al., Spatial Transformer Networks, arXiv 1506.02025): its output is the base
// grid times theta transposed, so theta's gradient is a product with the base grid.
#include "engine/training/gradient_rules.h"

namespace monet {

// theta [N, d, d + 1], output [N, O1, ..., Od, d]. A base point is (x, y, ..., 1), x along the last axis, from -1 to 1
// between the centres of the outermost pixels (align_corners) or between their outer borders.
void affine_grid_gradient(Backward& g) {
  constexpr int64_t kMaxSize = int64_t{1} << 16;  // positions along an axis are constants; no image is wider
  Builder& b = g.b;
  TensorId dy = g.gradient();
  DType type = b.dtype(dy);
  Shape y = b.shape(dy), theta = g.shape(g.input(0));
  int64_t axes = static_cast<int64_t>(y.size()) - 2;
  if (axes < 1 || theta != Shape{y[0], axes, axes + 1})
    return g.refuse("its matrices do not fit its grid", "check the shapes of the node");
  bool align_corners = attribute(g.node, "align_corners", int64_t{0});
  Shape image(y.begin() + 1, y.end() - 1);
  int64_t points = elements(image);
  image.push_back(1);
  std::vector<TensorId> columns;
  for (int64_t j = axes; j-- > 0;) {
    int64_t size = y[j + 1];
    if (size > kMaxSize) return g.refuse("its grid is " + std::to_string(size) + " wide", "make a smaller grid");
    std::vector<double> at;
    for (int64_t i = 0; i < size; ++i) {
      double steps = static_cast<double>(align_corners ? size - 1 : size), place = static_cast<double>(2 * i);
      at.push_back(align_corners ? (size == 1 ? -1 : place / steps - 1) : (place + 1) / steps - 1);
    }
    Shape line(image.size(), 1);
    line[j] = size;
    columns.push_back(b.expand(b.floats(at, line, type), image));
  }
  columns.push_back(b.filled(image, 1, type));
  Shape base = image;
  base.back() = axes + 1;
  TensorId grid = b.emit("Concat", columns, base, {{"axis", axes}});
  TensorId shares = b.transpose(b.reshape(dy, {y[0], points, axes}), {0, 2, 1});
  g.give(0, b.emit("MatMul", {shares, b.reshape(grid, {points, axes + 1})}, theta));
}

}  // namespace monet
