import type { Page } from '../page.ts';
import { chordOf, type Key, keyOf, modifiers } from './keys.ts';

export type Button = 'left' | 'middle' | 'right';

const buttonBits = { left: 1, right: 2, middle: 4 } as const;
/** Longer text is inserted at once, as if pasted: typing each key takes too long. */
const maxTyped = 500;

/** A point of a page’s viewport. */
export interface Point {
  x: number;
  y: number;
}

export async function hover(page: Page, { x, y }: Point): Promise<void> {
  await page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y, button: 'none', buttons: 0 });
}

export async function click(page: Page, point: Point, button: Button, count: number): Promise<void> {
  await hover(page, point);
  const { x, y } = point;
  for (let clickCount = 1; clickCount <= count; clickCount++) {
    const common = { x, y, button, clickCount };
    await page.send('Input.dispatchMouseEvent', { ...common, type: 'mousePressed', buttons: buttonBits[button] });
    await page.send('Input.dispatchMouseEvent', { ...common, type: 'mouseReleased', buttons: 0 });
  }
}

export async function turnWheel(page: Page, { x, y }: Point, by: { deltaX: number; deltaY: number }): Promise<void> {
  await page.send('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, ...by });
}

/** Presses a chord, for the focused element. Throws 422 `ACTION_REFUSED` for an unknown key. */
export async function press(page: Page, keys: string): Promise<void> {
  const { held, key, bits } = chordOf(keys);
  for (const modifier of held) await send(page, 'keyDown', modifier, bits);
  await send(page, 'keyDown', key, bits);
  await send(page, 'keyUp', key, bits);
  for (const modifier of held.toReversed()) await send(page, 'keyUp', modifier, 0);
}

/** Types text in place of the selection. */
export async function typeText(page: Page, text: string): Promise<void> {
  if (text === '') return press(page, 'Delete');
  if (text.length > maxTyped) {
    await page.send('Input.insertText', { text });
    return;
  }
  // The commands keep their order, and none waits for the answer to the one before.
  const typed: Promise<unknown>[] = [];
  for (const character of text) {
    const key = keyOf(character);
    if (key === undefined) typed.push(page.send('Input.insertText', { text: character }));
    else {
      const { isShifted, ...plain } = key;
      const bits = isShifted ? modifiers.shift : 0;
      typed.push(send(page, 'keyDown', plain, bits), send(page, 'keyUp', plain, bits));
    }
  }
  await Promise.all(typed);
}

async function send(page: Page, type: 'keyDown' | 'keyUp', key: Key, bits: number): Promise<void> {
  const { text, ...plain } = key;
  // A key that types no text needs a `rawKeyDown`.
  const down = text === undefined ? ({ type: 'rawKeyDown' } as const) : ({ type: 'keyDown', text } as const);
  await page.send('Input.dispatchKeyEvent', { ...plain, modifiers: bits, ...(type === 'keyUp' ? { type } : down) });
}
