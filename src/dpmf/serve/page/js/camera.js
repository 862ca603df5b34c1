// Where a place of the map is on the screen.

const MOST = 40; // times

/** Return how far the map reaches along both axes: nearly all items, since a few outliers would leave it empty. */
export function reachOf({ places, width, n }) {
  return [0, 1].map((axis) => {
    if (axis >= width) return 1;
    const distances = Float32Array.from({ length: n }, (_, item) => Math.abs(places[item * width + axis])).sort();
    return distances[Math.floor(0.995 * (n - 1))] * 1.12 || 1;
  });
}

export const clamped = (value, least, most) => Math.max(least, Math.min(most, value));

/** Return a camera that looks at the whole map, both directions to the same scale. */
export function makeCamera([reachX, reachY]) {
  let [width, height, scale, x, y] = [1, 1, 1, 0, 0];
  const unit = () => (scale * Math.min(width / reachX, height / reachY)) / 2;
  const hold = () => {
    const roam = 1 - 1 / scale;
    x = clamped(x, -reachX * roam, reachX * roam);
    y = clamped(y, -reachY * roam, reachY * roam);
  };
  return {
    fit(newWidth, newHeight) {
      [width, height] = [newWidth, newHeight];
    },
    toScreen: (px, py) => [width / 2 + (px - x) * unit(), height / 2 - (py - y) * unit()],
    isZoomed: () => scale > 1,
    reach: () => Math.min(width, height) / 2,
    pan(dx, dy) {
      x -= dx / unit();
      y += dy / unit();
      hold();
    },
    /** Come nearer by a factor, to a point of the screen that stays where it is; 0 shows the whole map again. */
    zoom(factor, px = width / 2, py = height / 2) {
      const before = unit();
      scale = factor === 0 ? 1 : clamped(scale * factor, 1, MOST);
      const change = 1 / before - 1 / unit();
      x += (px - width / 2) * change;
      y -= (py - height / 2) * change;
      hold();
    },
  };
}
