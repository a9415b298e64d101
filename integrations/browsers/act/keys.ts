import { modifierKeys, namedKeys } from '../../desktops/input/keyNames.ts';
import { browserError } from '../failures.ts';

/** A key of an American keyboard, as `Input.dispatchKeyEvent` needs it. */
export interface Key {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  text?: string;
}

const enter: Key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' };

export const modifiers = { alt: 1, ctrl: 2, meta: 4, shift: 8 } as const;

/** The keys of punctuation: the characters without and with shift, the key’s code, and its number. */
const punctuation: [string, string, number][] = [
  [' ', 'Space', 32],
  ['`~', 'Backquote', 192],
  ['-_', 'Minus', 189],
  ['=+', 'Equal', 187],
  ['[{', 'BracketLeft', 219],
  [']}', 'BracketRight', 221],
  ['\\|', 'Backslash', 220],
  [';:', 'Semicolon', 186],
  ['\'"', 'Quote', 222],
  [',<', 'Comma', 188],
  ['.>', 'Period', 190],
  ['/?', 'Slash', 191],
];
const shiftedDigits = ')!@#$%^&*(';

/** The key that people mean by a name such as `Enter` or `ctrl`. */
function keyNamed(name: string): Key | undefined {
  if (name === 'enter' || name === 'return') return enter;
  if (name === 'space') return keyOf(' ');
  if (name === 'plus') return keyOf('+');
  return namedKeys.get(name) ?? modifierKeys.get(name);
}

/** The key that types a character; undefined when the keyboard has none. */
export function keyOf(character: string): (Key & { isShifted: boolean }) | undefined {
  const has = (code: string, windowsVirtualKeyCode: number, isShifted: boolean) => ({
    ...{ key: character, code, windowsVirtualKeyCode, text: character },
    isShifted,
  });
  if (/^[a-z]$/i.test(character)) {
    const upper = character.toUpperCase();
    return has(`Key${upper}`, upper.charCodeAt(0), character === upper);
  }
  if (/^\d$/.test(character)) return has(`Digit${character}`, character.charCodeAt(0), false);
  if (character === '\n' || character === '\r') return { ...enter, isShifted: false };
  const digit = character === '' ? -1 : shiftedDigits.indexOf(character);
  if (digit >= 0) return has(`Digit${digit}`, 48 + digit, true);
  const found = punctuation.find(([both]) => character !== '' && both.includes(character));
  return found && has(found[1], found[2], found[0].indexOf(character) === 1);
}

/** The keys of a chord such as `ctrl+shift+t`: the held ones, and the pressed one. Throws 422 `ACTION_REFUSED`. */
export function chordOf(text: string): { held: Key[]; key: Key; bits: number } {
  const parts = text === '+' ? ['+'] : text.split(/\+(?=.)/).map((part) => part.trim());
  const last = parts.at(-1) ?? '';
  const held = parts.slice(0, -1).map((part) => modifierKeys.get(part.toLowerCase()));
  const typed = [...last].length === 1 ? keyOf(last) : undefined;
  const pressed = typed ?? keyNamed(last.toLowerCase());
  if (pressed === undefined || held.includes(undefined)) {
    throw browserError('ACTION_REFUSED', `There is no key “${text.slice(0, 50)}”. Keys are such as Enter or ctrl+a.`);
  }
  const known = held.filter((each) => each !== undefined);
  const bits = known.reduce((sum, { bit }) => sum | bit, typed?.isShifted === true ? modifiers.shift : 0);
  // A key types no text while one of these is held.
  const isCommand = (bits & (modifiers.ctrl | modifiers.meta | modifiers.alt)) !== 0;
  const key = bare(pressed);
  if (!isCommand && pressed.text !== undefined) key.text = pressed.text;
  return { held: known.map(bare), bits, key };
}

/** The fields that `Input.dispatchKeyEvent` takes for a key without text. */
function bare({ key, code, windowsVirtualKeyCode }: Key): Key {
  return { key, code, windowsVirtualKeyCode };
}
