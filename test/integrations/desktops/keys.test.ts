import { chordOf, keysymOf, UnknownKey } from '../../../integrations/desktops/input/keys.ts';

test.each([
  ['a', 0x61],
  ['A', 0x41],
  ['ü', 0xfc],
  ['€', 0x0100_20ac],
  ['😀', 0x0101_f600],
  ['\n', 0xff0d],
  ['\t', 0xff09],
])('%j is typed with its keysym', (character, keysym) => {
  expect(keysymOf(character)).toBe(keysym);
});

test.each(['\u0007', '\u007f', '\u0090'])('a control character is refused', (character) => {
  expect(() => keysymOf(character)).toThrow(UnknownKey);
});

test.each([
  ['Return', [0xff0d]],
  ['escape', [0xff1b]],
  ['F12', [0xffc9]],
  ['x', [0x78]],
  ['+', [0x2b]],
  ['ctrl++', [0xffe3, 0x2b]],
  ['ctrl+shift+t', [0xffe3, 0xffe1, 0x74]],
  ['Alt+F4', [0xffe9, 0xffc1]],
  ['shift', [0xffe1]],
  ['ctrl + c', [0xffe3, 0x63]],
])('the chord %s is parsed', (text, keysyms) => {
  expect(chordOf(text)).toEqual(keysyms);
});

test.each(['', 'F13', 'a+b', 'ctrl+', '++', 'constructor', 'toString', 'ctrl+valueOf'])('%j is refused', (text) => {
  expect(() => chordOf(text)).toThrow(UnknownKey);
});
