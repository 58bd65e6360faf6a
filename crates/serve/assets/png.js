// A picture of the charts that are seen, with their titles and legends.
import { save } from './dom.js';
import { inks } from './theme.js';

const HEAD = 42,
  PAD = 16,
  TITLE = 34;

export async function pngFile(name, heading, pictures) {
  const canvas = compose(heading, pictures.filter(Boolean));
  save(await new Promise((done) => canvas.toBlob(done, 'image/png')), name);
}

function compose(heading, pictures) {
  const ink = inks();
  const ratio = devicePixelRatio || 1;
  const across = pictures.length > 4 ? 3 : pictures.length > 1 ? 2 : 1;
  const width = Math.max(...pictures.map(({ canvas }) => canvas.width / ratio)) + PAD;
  const height = Math.max(...pictures.map(({ canvas }) => canvas.height / ratio)) + HEAD + PAD;
  const canvas = document.createElement('canvas');
  canvas.width = (across * width + PAD) * ratio;
  canvas.height = (Math.ceil(pictures.length / across) * height + TITLE + PAD) * ratio;
  const ctx = canvas.getContext('2d');
  ctx.scale(ratio, ratio);
  ctx.fillStyle = ink.paper;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  write(ctx, heading, PAD, TITLE - 10, '600 14px system-ui, sans-serif', ink.ink);
  pictures.forEach((picture, n) =>
    paint(
      ctx,
      picture,
      PAD + (n % across) * width,
      TITLE + PAD + Math.floor(n / across) * height,
      width - PAD,
      ratio,
      ink,
    ),
  );
  return canvas;
}

function write(ctx, text, x, y, font, colour) {
  ctx.font = font;
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
  return ctx.measureText(text).width;
}

function paint(ctx, { canvas, title, legend }, x, y, width, ratio, ink) {
  write(ctx, title, x, y + 12, '600 12px system-ui, sans-serif', ink.ink);
  let at = x;
  for (const { colour, label, value } of legend) {
    const text = `${label} ${value}`;
    ctx.font = '11px system-ui, sans-serif';
    if (at + ctx.measureText(text).width + 24 > x + width) break;
    ctx.fillStyle = colour;
    ctx.fillRect(at, y + 22, 8, 8);
    at += 12 + write(ctx, text, at + 12, y + 30, '11px system-ui, sans-serif', ink.text) + 12;
  }
  ctx.drawImage(canvas, x, y + HEAD - 4, canvas.width / ratio, canvas.height / ratio);
}
