import { shownSize } from '../desktops/picture.ts';
import type { Size } from '../desktops/rfb/rfbClient.ts';
import { CommandRefused } from './cdp/connection.ts';
import type { Clip } from './cdp/protocol.ts';
import { browserError, wrong } from './failures.ts';
import type { Page } from './page.ts';
import type { ShownTab } from './types.ts';

/** The limit for one picture: as many pixels as the largest display has. */
const maxPixels = 3_840 * 2_160;
const maxSide = 16_384;
const maxPdfBytes = 32 * 1_048_576;
const pieceBytes = 1_048_576;
const pngHead = '89504e470d0a1a0a0000000d49484452';

export async function screenshot(page: Page, { isFullPage }: { isFullPage: boolean }): Promise<Buffer> {
  await page.show();
  const { cssVisualViewport: view, cssContentSize: content } = await page.send('Page.getLayoutMetrics', {});
  const visible = sizeOf(view.clientWidth, view.clientHeight);
  const size = isFullPage ? sizeOf(content.width, Math.max(content.height, visible.height)) : visible;
  const width = Math.min(size.width, maxSide);
  const height = Math.max(1, Math.min(size.height, maxSide, Math.floor(maxPixels / width)));
  const at = isFullPage ? { x: 0, y: 0 } : { x: view.pageX, y: view.pageY };
  return capture(page, { ...at, width, height, scale: 1 }, isFullPage);
}

export async function shown(page: Page): Promise<ShownTab> {
  await page.show();
  const { cssVisualViewport: view } = await page.send('Page.getLayoutMetrics', {});
  const viewport = sizeOf(view.clientWidth, view.clientHeight);
  const scale = shownSize(viewport).width / viewport.width;
  const png = await capture(page, { x: view.pageX, y: view.pageY, ...viewport, scale }, false);
  return { png, width: png.readUInt32BE(16), height: png.readUInt32BE(20), viewport };
}

export async function pdf(page: Page): Promise<Buffer> {
  const { stream: handle } = await page.send('Page.printToPDF', {
    printBackground: true,
    preferCSSPageSize: true,
    transferMode: 'ReturnAsStream',
  });
  const pieces: Buffer[] = [];
  for (let length = 0; ; ) {
    const { data, eof, base64Encoded } = await page.send('IO.read', { handle, size: pieceBytes });
    const piece = Buffer.from(data, base64Encoded === true ? 'base64' : 'utf8');
    pieces.push(piece);
    length += piece.length;
    if (length > maxPdfBytes) throw browserError('PDF_TOO_LARGE', 'The PDF of this page is larger than 32 MiB.');
    if (eof) break;
  }
  await page.send('IO.close', { handle });
  return Buffer.concat(pieces);
}

/** Throws 502 `BROWSER_ANSWERED_WRONGLY` for anything but a PNG of a size within our limit. */
async function capture(page: Page, clip: Clip, isBeyondViewport: boolean): Promise<Buffer> {
  const { data } = await page
    .send('Page.captureScreenshot', { format: 'png', clip, captureBeyondViewport: isBeyondViewport })
    .catch((error: unknown) => {
      // Chromium refuses when a window has no size, and so no pixels.
      throw error instanceof CommandRefused
        ? browserError('ELEMENT_NOT_VISIBLE', 'This tab has nothing to take a picture of.', { cause: error })
        : error;
    });
  const png = Buffer.from(data, 'base64');
  if (png.length < 24 || png.toString('hex', 0, 16) !== pngHead) throw wrong();
  if (png.readUInt32BE(16) * png.readUInt32BE(20) > 2 * maxPixels) throw wrong();
  return png;
}

/** A window may have no size for a moment. */
function sizeOf(width: number, height: number): Size {
  return { width: Math.max(1, Math.floor(width)), height: Math.max(1, Math.floor(height)) };
}
