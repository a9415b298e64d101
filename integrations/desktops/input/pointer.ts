import type { RfbClient } from '../rfb/rfbClient.ts';

export interface Point {
  x: number;
  y: number;
}

export type Button = 'left' | 'middle' | 'right';

/** The bits of a pointer’s message (RFC 6143, 7.5.5); wheels are buttons that are pressed for each step. */
const bits = { left: 1, middle: 2, right: 4, up: 8, down: 16, wheelLeft: 32, wheelRight: 64 } as const;
const dragSteps = 10;

/** What the pointer does while some keys are held. */
export interface Held {
  keys: readonly number[];
}

/** Clicks, this often. */
export function click(rfb: RfbClient, at: Point, { button, count, keys }: { button: Button; count: number } & Held) {
  return holding(rfb, keys, async () => {
    rfb.pointer(at.x, at.y, 0);
    // Programs that draw something new under the pointer do so before it is pressed.
    await rfb.settled();
    for (let n = 0; n < count; n++) {
      rfb.pointer(at.x, at.y, bits[button]);
      rfb.pointer(at.x, at.y, 0);
    }
  });
}

/** Presses at one point, and lets go at another. */
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

/** Turns the wheels by so many steps: down and right where they are positive. */
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

/** Presses keys together, and lets go of them in the other order. */
export function press(rfb: RfbClient, keys: readonly number[]): Promise<void> {
  return holding(rfb, keys, async () => undefined);
}

/** What a client holds when its connection ends, the server lets go of. */
async function holding(rfb: RfbClient, keys: readonly number[], act: () => Promise<void>): Promise<void> {
  for (const key of keys) rfb.key(key, true);
  await act();
  for (const key of keys.toReversed()) rfb.key(key, false);
  await rfb.settled();
}
