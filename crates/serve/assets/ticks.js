// Labels of a time axis that do not touch each other. No elements here.

const GAP_PX = 8;

/**
 * The labels that there is room for; the others are empty. `labels`: {text, middle, width} in pixels from the left of
 * the plot, in the order of the ticks; `left` and `right` are where a label may begin and has to end.
 */
export function apart(labels, left, right) {
  let taken = left;
  const inOrder = [...labels].sort((a, b) => a.middle - b.middle);
  const kept = new Set();
  for (const each of inOrder) {
    const begin = each.middle - each.width / 2;
    if (begin < taken || begin + each.width > right) continue;
    kept.add(each);
    taken = begin + each.width + GAP_PX;
  }
  return labels.map((each) => (kept.has(each) ? each.text : ''));
}

/** The least number of pixels between ticks of a range, by the widths of labels with and without seconds. */
export function tickSpace(length, plotPx, { long, short }) {
  const step = ((long + GAP_PX) / Math.max(plotPx, 1)) * length;
  return Math.ceil((step < 60 ? long : short) + 2 * GAP_PX);
}
