import { browserError } from '../failures.ts';

/** A key of an American keyboard, as `Input.dispatchKeyEvent` needs it. */
export interface Key {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  text?: string;
}

const enter: Key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' };

/** The names that people give to keys, in lower case. */
const named = new Map<string, Key>(
  Object.entries({
    enter,
    return: enter,
    tab: plain('Tab', 9),
    escape: plain('Escape', 27),
    esc: plain('Escape', 27),
    backspace: plain('Backspace', 8),
    delete: plain('Delete', 46),
    insert: plain('Insert', 45),
    home: plain('Home', 36),
    end: plain('End', 35),
    pageup: plain('PageUp', 33),
    pagedown: plain('PageDown', 34),
    left: plain('ArrowLeft', 37),
    up: plain('ArrowUp', 38),
    right: plain('ArrowRight', 39),
    down: plain('ArrowDown', 40),
    arrowleft: plain('ArrowLeft', 37),
    arrowup: plain('ArrowUp', 38),
    arrowright: plain('ArrowRight', 39),
    arrowdown: plain('ArrowDown', 40),
    space: { key: ' ', code: 'Space', windowsVirtualKeyCode: 32, text: ' ' },
    plus: { key: '+', code: 'Equal', windowsVirtualKeyCode: 187, text: '+' },
    ...Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`f${at + 1}`, plain(`F${at + 1}`, 112 + at)])),
  }),
);

export const modifiers = { alt: 1, ctrl: 2, meta: 4, shift: 8 } as const;
const modifierNames = new Map<string, { bit: number; key: Key }>(
  Object.entries({
    alt: { bit: modifiers.alt, key: { key: 'Alt', code: 'AltLeft', windowsVirtualKeyCode: 18 } },
    ctrl: { bit: modifiers.ctrl, key: { key: 'Control', code: 'ControlLeft', windowsVirtualKeyCode: 17 } },
    control: { bit: modifiers.ctrl, key: { key: 'Control', code: 'ControlLeft', windowsVirtualKeyCode: 17 } },
    meta: { bit: modifiers.meta, key: { key: 'Meta', code: 'MetaLeft', windowsVirtualKeyCode: 91 } },
    cmd: { bit: modifiers.meta, key: { key: 'Meta', code: 'MetaLeft', windowsVirtualKeyCode: 91 } },
    super: { bit: modifiers.meta, key: { key: 'Meta', code: 'MetaLeft', windowsVirtualKeyCode: 91 } },
    shift: { bit: modifiers.shift, key: { key: 'Shift', code: 'ShiftLeft', windowsVirtualKeyCode: 16 } },
  }),
);

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

function plain(key: string, windowsVirtualKeyCode: number): Key {
  return { key, code: key, windowsVirtualKeyCode };
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
  const held = parts.slice(0, -1).map((part) => modifierNames.get(part.toLowerCase()));
  const last = parts.at(-1) ?? '';
  const typed = [...last].length === 1 ? keyOf(last) : undefined;
  const key = typed ?? named.get(last.toLowerCase()) ?? modifierNames.get(last.toLowerCase())?.key;
  if (key === undefined || held.includes(undefined)) {
    throw browserError('ACTION_REFUSED', `There is no key “${text.slice(0, 50)}”. Keys are such as Enter or ctrl+a.`);
  }
  const known = held.filter((each) => each !== undefined);
  const bits = known.reduce((sum, { bit }) => sum | bit, typed?.isShifted === true ? modifiers.shift : 0);
  // A key types no text while one of these is held.
  const isCommand = (bits & (modifiers.ctrl | modifiers.meta | modifiers.alt)) !== 0;
  const { key: name, code, windowsVirtualKeyCode, text: types } = key;
  return {
    held: known.map((each) => each.key),
    bits,
    key: { key: name, code, windowsVirtualKeyCode, ...(!isCommand && types !== undefined && { text: types }) },
  };
}
