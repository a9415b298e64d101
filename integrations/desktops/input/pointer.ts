import type { RfbClient } from '../rfb/rfbClient.ts';

interface Point {
  x: number;
  y: number;
}

export type Button = 'left' | 'middle' | 'right';

/** The button bits of a pointer message (RFC 6143, 7.5.5). A wheel is a button that is pressed for each step. */
const bits = { left: 1, middle: 2, right: 4, up: 8, down: 16, wheelLeft: 32, wheelRight: 64 } as const;
const dragSteps = 10;

/** Keys that are held while the pointer acts. */
interface Held {
  keys: readonly number[];
}

/** Clicks `count` times. */
export function click(rfb: RfbClient, at: Point, { button, count, keys }: { button: Button; count: number } & Held) {
  return holding(rfb, keys, async () => {
    rfb.pointer(at.x, at.y, 0);
    // Gives programs time to draw what appears under the pointer.
    await rfb.settled();
    for (let n = 0; n < count; n++) {
      rfb.pointer(at.x, at.y, bits[button]);
      rfb.pointer(at.x, at.y, 0);
    }
  });
}

/** Presses a button at one point, and releases it at another. */
export function drag(rfb: RfbClient, from: Point, to: Point, { button, keys }: { button: Button } & Held) {
  return holding(rfb, keys, async () => {
    rfb.pointer(from.x, from.y, 0);
    await rfb.settled();
    rfb.pointer(from.x, from.y, bits[button]);
    for (let step = 1; step <= dragSteps; step++) {
      const between = (a: number, b: number) => Math.round(a + ((b - a) * step) / dragSteps);
      rfb.pointer(between(from.x, to.x), between(from.y, to.y), bits[button]);
      await rfb.settled();
    }
    rfb.pointer(to.x, to.y, 0);
  });
}

/** Turns the wheels by these numbers of steps: down and right if they are positive. */
export function scroll(rfb: RfbClient, at: Point, { right, down, keys }: { right: number; down: number } & Held) {
  return holding(rfb, keys, async () => {
    rfb.pointer(at.x, at.y, 0);
    const turn = (steps: number, bit: number) => {
      for (let n = 0; n < steps; n++) {
        rfb.pointer(at.x, at.y, bit);
        rfb.pointer(at.x, at.y, 0);
      }
    };
    turn(Math.abs(down), down > 0 ? bits.down : bits.up);
    turn(Math.abs(right), right > 0 ? bits.wheelRight : bits.wheelLeft);
  });
}

/** Presses keys together, and releases them in the opposite order. */
export function press(rfb: RfbClient, keys: readonly number[]): Promise<void> {
  return holding(rfb, keys, async () => undefined);
}

/** Holds keys during an action. If the connection ends, the server releases them. */
async function holding(rfb: RfbClient, keys: readonly number[], act: () => Promise<void>): Promise<void> {
  for (const key of keys) rfb.key(key, true);
  await act();
  for (const key of keys.toReversed()) rfb.key(key, false);
  await rfb.settled();
}
