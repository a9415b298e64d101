import { modifierKeys, namedKeys } from './keyNames.ts';

/** There is no such X key. The message is for the caller. */
export class UnknownKey extends Error {
  override readonly name = 'UnknownKey';
}

const returnKey = 0xff0d;
const tabKey = 0xff09;
/** Names of keys that type a character, or that only a desktop has. */
const others: ReadonlyMap<string, number> = new Map([
  ['space', 0x20],
  ['plus', 0x2b],
  ['menu', 0xff67],
  ['print', 0xff61],
]);

/** The keysym that types a character. Throws {@link UnknownKey} for control characters. */
export function keysymOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x0a || code === 0x0d) return returnKey;
  if (code === 0x09) return tabKey;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
    throw new UnknownKey(`The text has a control character, U+${code.toString(16).padStart(4, '0')}.`);
  }
  // The keysym of a Latin-1 character is its code. The rest of Unicode has a range of its own.
  return code <= 0xff ? code : 0x0100_0000 + code;
}

/**
 * The keysyms of keys that are pressed together, such as `ctrl+shift+t`, in the order in which they go down. Throws
 * {@link UnknownKey}.
 */
export function chordOf(text: string): number[] {
  // The plus is a key too: `ctrl++`.
  const names = text.endsWith('++')
    ? [...text.slice(0, -2).split('+'), 'plus']
    : text === '+'
      ? ['plus']
      : text.split('+');
  return names.map((name, index) => {
    const key = name.trim().toLowerCase();
    const modifier = modifierKeys.get(key);
    if (modifier !== undefined) return modifier.keysym;
    if (index < names.length - 1) throw new UnknownKey(`"${name}" is not shift, ctrl, alt or meta.`);
    const known = namedKeys.get(key)?.keysym ?? others.get(key);
    if (known !== undefined) return known;
    if ([...name.trim()].length === 1) return keysymOf(name.trim());
    throw new UnknownKey(
      `There is no key "${name}". Keys are single characters and names such as Return, Escape or F5.`,
    );
  });
}
