// Saving results: texts, bytes, and charts as SVG (with the page's colours written into it) or PNG.
export function save(
  name: string,
  content: string | Uint8Array<ArrayBuffer> | Blob,
  type = "application/octet-stream",
) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const stem = (name: string) => name.replace(/\.(onnx|json)$/i, "");

const painted = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-weight",
  "text-anchor",
];

const svgNamespace = "http://www.w3.org/2000/svg";

function added(parent: SVGElement, name: string, attributes: Record<string, string | number>, text = "") {
  const element = document.createElementNS(svgNamespace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.textContent = text;
  parent.append(element);
}

// The chart of a figure as a drawing that stands alone: the styles that apply to it become its attributes, and the
// figure's title and legend are drawn above and below.
function standalone(figure: HTMLElement): { text: string; width: number; height: number } {
  const drawing = figure.querySelector<SVGSVGElement>("svg.chart")!;
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const originals = drawing.querySelectorAll<SVGElement>("*");
  copy.querySelectorAll<SVGElement>("*").forEach((element, index) => {
    const style = getComputedStyle(originals[index]!);
    if (style.display === "none") element.setAttribute("display", "none");
    for (const name of painted) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  });
  const { width: drawn, height: inner } = drawing.viewBox.baseVal;
  const { color: ink, backgroundColor: ground } = getComputedStyle(figure);
  const title = 30;
  const entry = 150;
  const perRow = Math.max(1, Math.floor(drawn / entry));
  const legend = [...figure.querySelectorAll<SVGElement>(".legend [data-label]")];
  const margin = 8;
  const height = title + inner + Math.ceil(legend.length / perRow) * 20 + margin;

  const width = drawn + 2 * margin;
  const root = document.createElementNS(svgNamespace, "svg");
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    root.setAttribute(key, String(value));
  }
  root.setAttribute("font-family", "system-ui, sans-serif");
  added(root, "rect", { width, height, fill: ground });
  added(root, "text", { x: margin, y: 20, "font-size": 14, "font-weight": 600, fill: ink }, figure.dataset.title);
  copy.setAttribute("x", String(margin));
  copy.setAttribute("y", String(title));
  copy.setAttribute("width", String(drawn));
  copy.setAttribute("height", String(inner));
  for (const name of [...copy.getAttributeNames()]) {
    if (/^(class|role|tabindex|aria-.*)$/.test(name)) copy.removeAttribute(name);
  }
  root.append(copy);
  legend.forEach((item, index) => {
    const x = margin + (index % perRow) * entry;
    const y = title + inner + Math.floor(index / perRow) * 20;
    added(root, "rect", { x, y: y + 3, width: 10, height: 10, fill: getComputedStyle(item).fill });
    added(root, "text", { x: x + 15, y: y + 12, "font-size": 11, fill: ink }, item.dataset.label);
  });
  return { text: new XMLSerializer().serializeToString(root), width, height };
}

export const saveSvg = (name: string, figure: HTMLElement) =>
  save(`${name}.svg`, standalone(figure).text, "image/svg+xml");

export async function savePng(name: string, figure: HTMLElement) {
  const scale = 2; // sharp on dense screens and in slides
  const { text, width, height } = standalone(figure);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  URL.revokeObjectURL(url);
  const canvas = document.createElement("canvas");
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(`${name}.png`, blob));
}
