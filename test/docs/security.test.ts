import { existsSync, readFileSync } from 'node:fs';

// docs/security.md names a test for each requirement. A test that was moved or deleted proves nothing.

const page = readFileSync('docs/security.md', 'utf8');
const named = [...new Set([...page.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, path = '']) => path))];
const rows = [...page.matchAll(/^\| (\d+\.\d+[^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|$/gm)].map((match) =>
  match.slice(1).map((cell) => cell.trim()),
);

test('The tests that docs/security.md names exist', () => {
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});

test('Each requirement has a state, and one that is met names its test, or says that there is none', () => {
  expect(rows.length).toBeGreaterThan(100);
  expect(rows.filter(([, , state = '']) => !['✓', '◐', '✗', '–'].includes(state))).toEqual([]);
  const unproven = rows.filter(
    ([, , state, , proof = '']) =>
      state === '✓' && proof !== 'not tested' && !named.some((path) => proof.includes(path)),
  );
  expect(unproven.map(([id]) => id)).toEqual([]);
});

test('docs/security.md has each chapter from V1 to V16', () => {
  const chapters = [...page.matchAll(/^### V(\d+) /gm)].map(([, number]) => Number(number));
  expect(chapters).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
});

test.each(['SECURITY.md', 'docs/security.md'])('The pages that %s links to exist', (file) => {
  const folder = file.startsWith('docs/') ? 'docs/' : '';
  const links = [...readFileSync(file, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)#?[^)]*\)/g)].map(
    ([, path = '']) => path,
  );
  expect(links.filter((path) => path !== '' && !existsSync(folder + path))).toEqual([]);
});
