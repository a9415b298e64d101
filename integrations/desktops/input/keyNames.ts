/** A key that types no text, as the DOM and an X server (keysymdef.h) know it. */
export interface NamedKey {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  keysym: number;
}

/** Builds a table by the names that people and browsers give to keys, in lower case. */
function byName<Key>(rows: readonly (readonly [names: string, key: Key])[]): ReadonlyMap<string, Key> {
  return new Map(rows.flatMap(([names, key]) => names.split(' ').map((name) => [name, key] as const)));
}

function named(key: string, windowsVirtualKeyCode: number, keysym: number, code = key): NamedKey {
  return { key, code, windowsVirtualKeyCode, keysym };
}

export const namedKeys = byName([
  ['enter return', named('Enter', 13, 0xff0d)],
  ['tab', named('Tab', 9, 0xff09)],
  ['escape esc', named('Escape', 27, 0xff1b)],
  ['backspace', named('Backspace', 8, 0xff08)],
  ['delete', named('Delete', 46, 0xffff)],
  ['insert', named('Insert', 45, 0xff63)],
  ['home', named('Home', 36, 0xff50)],
  ['end', named('End', 35, 0xff57)],
  ['pageup', named('PageUp', 33, 0xff55)],
  ['pagedown', named('PageDown', 34, 0xff56)],
  ['left arrowleft', named('ArrowLeft', 37, 0xff51)],
  ['up arrowup', named('ArrowUp', 38, 0xff52)],
  ['right arrowright', named('ArrowRight', 39, 0xff53)],
  ['down arrowdown', named('ArrowDown', 40, 0xff54)],
  ...Array.from({ length: 12 }, (_, at) => {
    const number = at + 1;
    return [`f${number}`, named(`F${number}`, 111 + number, 0xffbd + number)] as const;
  }),
]);

/** Keys that are held while others are pressed, each with its bit in `Input.dispatchKeyEvent`. */
export const modifierKeys = byName([
  ['alt', { ...named('Alt', 18, 0xffe9, 'AltLeft'), bit: 1 }],
  ['ctrl control', { ...named('Control', 17, 0xffe3, 'ControlLeft'), bit: 2 }],
  ['meta super cmd', { ...named('Meta', 91, 0xffeb, 'MetaLeft'), bit: 4 }],
  ['shift', { ...named('Shift', 16, 0xffe1, 'ShiftLeft'), bit: 8 }],
]);
