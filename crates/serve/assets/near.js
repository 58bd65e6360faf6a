// What happened near a moment, in words. No elements here.

/** Events within a hair's breadth of a moment. */
export function nearMarks(marks, { from, thru }, time) {
  if (time === null || time === undefined) return [];
  const reach = (thru - from) / 100;
  return marks.filter((mark) => time >= mark.time - reach && time <= mark.until + reach);
}

export const sayMarks = (marks) =>
  marks.map((mark) => (mark.text.startsWith(mark.kind) ? mark.text : `${mark.kind}: ${mark.text}`)).join(' · ');
