// Gradients of the Fourier transforms. They are linear, so a gradient is the adjoint: the transform in the other
// direction, without the other's scale. Complex numbers are pairs of reals in the last dimension; a real input's
// gradient is the real part. One-sided transforms leave out bins, whose gradients are zero.
#include <numeric>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// Zeros behind, or a cut, along one axis.
TensorId with_length(Builder& b, TensorId a, int64_t axis, int64_t length) {
  Shape shape = b.shape(a);
  if (shape[axis] >= length) return shape[axis] == length ? a : b.slice(a, {axis}, {0}, {length});
  std::vector<int64_t> pads(2 * shape.size(), 0);
  pads[shape.size() + axis] = length - shape[axis];
  shape[axis] = length;
  return b.emit("Pad", {a, b.ints(pads)}, shape);
}

// Adjoint of the transform of `length` elements along `axis`, from as many bins as dY has to `length` elements with
// `parts` (1: real, 2: complex) numbers each.
TensorId adjoint(Builder& b, TensorId dy, int64_t axis, int64_t length, bool inverse, int64_t parts) {
  TensorId whole = with_length(b, dy, axis, length);
  std::vector<Attribute> other_way;
  if (!inverse) other_way.push_back({"inverse", int64_t{1}});
  TensorId dx = b.emit("DFT", {whole, kNone, b.scalar(static_cast<double>(axis), DType::int64)}, b.shape(whole),
                       std::move(other_way));
  int64_t last = static_cast<int64_t>(b.shape(dx).size()) - 1;
  dx = with_length(b, dx, last, parts);
  double n = static_cast<double>(length);
  return b.scaled(dx, inverse ? 1 / n : n);
}

// A scalar input's known value.
bool known(const Backward& g, size_t input, int64_t& value) {
  if (g.input(input) == kNone) return false;
  std::vector<int64_t> values = integers(g.tensor(g.input(input)));
  if (values.size() != 1) return false;
  value = values[0];
  return true;
}

}  // namespace

void dft_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  int64_t axis = -2;
  if (g.input(2) != kNone && !known(g, 2, axis))
    return g.refuse("its axis is not a constant", "export the model with a fixed axis");
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  int64_t length = x[axis];
  if (g.input(1) != kNone && !known(g, 1, length))
    return g.refuse("its dft_length is not a constant", "export the model with a fixed length");
  TensorId dx = adjoint(b, g.gradient(), axis, length, attribute(g.node, "inverse", int64_t{0}), x.back());
  g.give(0, with_length(b, dx, axis, x[axis]));  // the transform padded its input, or cut it
}

// Y[b, f, k] = sum over n of window[n] * signal[b, f * step + n] * exp(-2 pi i k n / N): frames, windowed, transformed.
void stft_gradient(Backward& g) {
  constexpr int64_t kMaxIndices = int64_t{1} << 20;  // the table of positions is a constant of the graph
  Builder& b = g.b;
  Shape signal = g.shape(g.input(0)), y = g.shape(g.gradient());
  int64_t step = 0, length = 0;
  if (g.input(2) != kNone) length = g.shape(g.input(2))[0];
  if (!known(g, 1, step) || (length == 0 && !known(g, 3, length)))
    return g.refuse("its frame step or length is not a constant", "export the model with fixed frames");
  int64_t frames = y[1], count = frames * length, parts = signal.back();
  if (count > kMaxIndices)
    return g.refuse("its " + std::to_string(frames) + " frames have " + std::to_string(count) + " elements",
                    "transform a shorter signal");
  std::vector<int64_t> positions;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t n = 0; n < length; ++n) positions.push_back(f * step + n);
  Shape framed = {signal[0], frames, length, parts}, flat = {signal[0], count, parts};
  TensorId d_frames = adjoint(b, g.gradient(), 2, length, false, parts);
  if (g.wants(2)) {
    TensorId taken = b.emit("Gather", {g.input(0), b.ints(positions)}, flat, {{"axis", int64_t{1}}});
    g.give(2, b.reduce("ReduceSum", b.mul(b.reshape(taken, framed), d_frames), {0, 1, 3}, false));
  }
  if (!g.wants(0)) return;
  if (g.input(2) != kNone) d_frames = b.mul(d_frames, b.reshape(g.input(2), {length, 1}));
  TensorId index = b.expand(b.reshape(b.ints(positions), {1, count, 1}), flat);
  g.give(0, b.emit("ScatterElements", {b.filled(signal, 0, b.dtype(d_frames)), index, b.reshape(d_frames, flat)},
                   signal, {{"axis", int64_t{1}}, {"reduction", std::string("add")}}));
}

}  // namespace monet
