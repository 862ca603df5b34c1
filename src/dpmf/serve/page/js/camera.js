// Where a place of the map is on the screen.

const MOST = 40; // times
const LEFT_OUT = 0.003; // share of the items, on each side

/** Return [middle, reach] along both axes, of nearly all items, since a few outliers would leave the map empty. */
export function extentOf({ places, n, mapped }) {
  return [0, 1].map((axis) => {
    const found = [];
    for (let item = 0; item < n; item++) if (mapped[item]) found.push(places[2 * item + axis]);
    const sorted = Float32Array.from(found).sort();
    const skipped = Math.floor(LEFT_OUT * sorted.length);
    const [least, most] = [sorted[skipped] ?? 0, sorted.at(-1 - skipped) ?? 0];
    return [(least + most) / 2, ((most - least) / 2) * 1.12 || 1];
  });
}

export const clamped = (value, least, most) => Math.max(least, Math.min(most, value));

/** Return a camera that looks at the whole map, both directions to the same scale. */
export function makeCamera([[middleX, reachX], [middleY, reachY]]) {
  let [width, height, scale, x, y] = [1, 1, 1, middleX, middleY];
  const unit = () => (scale * Math.min(width / reachX, height / reachY)) / 2;
  const hold = () => {
    const roam = 1 - 1 / scale;
    x = clamped(x, middleX - reachX * roam, middleX + reachX * roam);
    y = clamped(y, middleY - reachY * roam, middleY + reachY * roam);
  };
  return {
    fit(newWidth, newHeight) {
      [width, height] = [newWidth, newHeight];
    },
    toScreen: (px, py) => [width / 2 + (px - x) * unit(), height / 2 - (py - y) * unit()],
    isZoomed: () => scale > 1,
    /** How many pixels a part of the map's width or height is. */
    length: (share) => 2 * share * Math.max(reachX, reachY) * unit(),
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
