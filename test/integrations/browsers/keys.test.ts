import { chordOf, keyOf } from '../../../integrations/browsers/act/keys.ts';

test.each([
  ['a', 'KeyA', 65, false],
  ['Z', 'KeyZ', 90, true],
  ['7', 'Digit7', 55, false],
  ['&', 'Digit7', 55, true],
  ['_', 'Minus', 189, true],
  ['"', 'Quote', 222, true],
  [' ', 'Space', 32, false],
])('%j is typed with its key and shift state', (character, code, windowsVirtualKeyCode, isShifted) => {
  expect(keyOf(character)).toEqual({ key: character, text: character, code, windowsVirtualKeyCode, isShifted });
});

test.each(['ö', '€', '😀', ''])('%j has no key on an American keyboard', (character) => {
  expect(keyOf(character)).toBeUndefined();
});

test.each([
  ['Enter', 'Enter', [], 0],
  ['ctrl+a', 'a', ['Control'], 2],
  ['Ctrl+Shift+ArrowLeft', 'ArrowLeft', ['Control', 'Shift'], 10],
  ['X', 'X', [], 8],
  ['+', '+', [], 8],
  ['ctrl++', '+', ['Control'], 10],
  ['shift', 'Shift', [], 0],
])('the chord %s is parsed', (text, pressed, held, bits) => {
  const chord = chordOf(text);
  expect({ key: chord.key.key, held: chord.held.map(({ key }) => key), bits: chord.bits }).toEqual({
    key: pressed,
    held,
    bits,
  });
});

test('a key pressed with Control types no text', () => {
  expect(chordOf('ctrl+a').key.text).toBeUndefined();
  expect(chordOf('shift+A').key.text).toBe('A');
});

test.each(['', 'F13', 'a+b', 'ctrl+', 'hyper+x', 'constructor'])('%j is refused as a chord', (text) => {
  expect(() => chordOf(text)).toThrow(expect.objectContaining({ code: 'ACTION_REFUSED' }));
});
