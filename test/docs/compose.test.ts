import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { settingNames } from '../../config/index.ts';

const text = readFileSync('docker-compose.yml', 'utf8');
const compose = load(text) as { 'x-atrium': { environment: Record<string, string> } };
const example = new Set([...readFileSync('.env.example', 'utf8').matchAll(/^(\w+)=/gm)].map(([, name = '']) => name));

test('docker-compose.yml sets only variables that there are', () => {
  const names = Object.keys(compose['x-atrium'].environment);
  expect(names.filter((name) => !settingNames.includes(name))).toEqual([]);
});

test('.env.example has whatever docker-compose.yml reads without a default, and nothing that it does not read', () => {
  const read = [...text.matchAll(/\$\{(\w+)(:-([^}]*))?/g)].map(([, name = '', , fallback = '']) => ({
    name,
    fallback,
  }));
  expect(read.filter(({ name, fallback }) => fallback === '' && !example.has(name))).toEqual([]);
  const names = new Set(read.map(({ name }) => name));
  expect([...example].filter((name) => !names.has(name))).toEqual([]);
});

test('signed links are opened by clients: their store has an address of its own', () => {
  expect(compose['x-atrium'].environment.ATRIUM_S3_PUBLIC_ENDPOINT).toMatch(/localhost/);
});
