import { onDisplay, scaledDown, shownSize } from '../../../integrations/desktops/picture.ts';

test.each([
  ['as it is', { width: 1_280, height: 800 }, { width: 1_280, height: 800 }],
  ['smaller, for its pixels', { width: 1_920, height: 1_080 }, { width: 1_429, height: 804 }],
  ['smaller, for its longer side', { width: 3_840, height: 640 }, { width: 1_568, height: 261 }],
  ['smaller, at the largest', { width: 3_840, height: 2_160 }, { width: 1_429, height: 804 }],
])('a display is shown %s', (_how, display, shown) => {
  expect(shownSize(display)).toEqual(shown);
});

test('each point of the shown picture is on the display, up to its last pixels', () => {
  for (const display of [
    { width: 3_840, height: 2_160 },
    { width: 1_281, height: 899 },
    { width: 640, height: 480 },
  ]) {
    const shown = shownSize(display);
    const first = onDisplay({ x: 0, y: 0 }, display);
    const last = onDisplay({ x: shown.width - 1, y: shown.height - 1 }, display);
    expect(Math.max(first.x, first.y)).toBeLessThanOrEqual(display.width / shown.width);
    expect(last.x).toBeLessThan(display.width);
    expect(last.y).toBeLessThan(display.height);
    expect(display.width - last.x).toBeLessThanOrEqual(Math.ceil(display.width / shown.width));
  }
});

test('a pixel of the smaller picture is the mean of the pixels in its place', async () => {
  const rows = [
    [10, 30, 200, 200],
    [20, 40, 200, 200],
  ];
  const pixels = Buffer.from(rows.flat().flatMap((grey) => [grey, grey, 0, 0]));
  const scaled = await scaledDown({ width: 4, height: 2, pixels }, { width: 2, height: 1 });
  expect(scaled).toEqual({ width: 2, height: 1, pixels: Buffer.from([25, 25, 0, 0, 200, 200, 0, 0]) });
});

test('a picture of the same size is returned unchanged', async () => {
  const picture = { width: 1, height: 1, pixels: Buffer.from([1, 2, 3, 0]) };
  expect(await scaledDown(picture, { width: 1, height: 1 })).toBe(picture);
});
