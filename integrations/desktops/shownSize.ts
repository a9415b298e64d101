import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Picture, Size } from './rfb/rfbClient.ts';

/** Above these, providers scale a picture down by themselves, and a model’s coordinates are of what they have made. */
const longestSide = 1_568;
const mostPixels = 1_150_000;
const rowsAtOnce = 64;

/** How large a display is shown to models: as it is, or in proportion. */
export function shownSize({ width, height }: Size): Size {
  const factor = Math.min(1, longestSide / Math.max(width, height), Math.sqrt(mostPixels / (width * height)));
  return { width: Math.max(1, Math.floor(width * factor)), height: Math.max(1, Math.floor(height * factor)) };
}

/** Where a point of what is shown is on the display itself. */
export function onDisplay({ x, y }: { x: number; y: number }, display: Size): { x: number; y: number } {
  const shown = shownSize(display);
  return {
    x: Math.floor(((x + 0.5) * display.width) / shown.width),
    y: Math.floor(((y + 0.5) * display.height) / shown.height),
  };
}

/** The picture in a smaller size: each pixel is the mean of those that it stands for. */
export async function scaledDown(picture: Picture, { width, height }: Size): Promise<Picture> {
  if (width >= picture.width && height >= picture.height) return picture;
  const pixels = Buffer.alloc(width * height * 4);
  const columns = spans(picture.width, width);
  const rows = spans(picture.height, height);
  for (const [y, rowSpan] of rows.entries()) {
    // A large screen must not hold up everybody else.
    if (y % rowsAtOnce === 0) await nextTurnOfEventLoop();
    for (const [x, columnSpan] of columns.entries()) {
      const to = (y * width + x) * 4;
      const count = (rowSpan.end - rowSpan.start) * (columnSpan.end - columnSpan.start);
      let [red, green, blue] = [0, 0, 0];
      for (let row = rowSpan.start; row < rowSpan.end; row++) {
        let from = (row * picture.width + columnSpan.start) * 4;
        for (let column = columnSpan.start; column < columnSpan.end; column++, from += 4) {
          red += picture.pixels[from] as number;
          green += picture.pixels[from + 1] as number;
          blue += picture.pixels[from + 2] as number;
        }
      }
      pixels[to] = Math.round(red / count);
      pixels[to + 1] = Math.round(green / count);
      pixels[to + 2] = Math.round(blue / count);
    }
  }
  return { width, height, pixels };
}

/** For each pixel of the smaller one, those of the larger one that it stands for. */
function spans(from: number, to: number): { start: number; end: number }[] {
  return Array.from({ length: to }, (_, index) => ({
    start: Math.floor((index * from) / to),
    end: Math.max(Math.ceil(((index + 1) * from) / to), Math.floor((index * from) / to) + 1),
  }));
}
