import { readdirSync, readFileSync } from 'node:fs';
import { clientNames, parseEnvironment, settingNames } from '../../config/index.ts';

const page = readFileSync('docs/configuration.md', 'utf8');
const rows = new Map(
  [...page.matchAll(/^\| `(ATRIUM_\w+|DOCKER_HOST)` \| (?:`(.*?)`)? ?\|/gm)].map(([, name = '', value]) => [
    name,
    value,
  ]),
);

test('docs/configuration.md has a row for each variable, and no other', () => {
  expect([...rows.keys()].sort()).toEqual([...settingNames].sort());
});

test.each([...settingNames])('the documented default of %s is the real one', (name) => {
  const value = (parseEnvironment({}) as Record<string, unknown>)[name];
  const real = Array.isArray(value) ? value.join(',') : String(value ?? '');
  expect(rows.get(name) ?? '').toBe(real);
});

test('The variables that clients are told to set are known, and are no settings', () => {
  const pages = readdirSync('docs').map((name) => readFileSync(`docs/${name}`, 'utf8'));
  const names = pages.flatMap((page) => [...page.matchAll(/(?:\$\{?|environ\["|process\.env\.)(ATRIUM_\w+)/g)]);
  const used = new Set(names.map(([, name = '']) => name).filter((name) => !settingNames.includes(name)));
  expect([...used].sort()).toEqual([...clientNames].sort());
});
