import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { settingNames } from '../../config/index.ts';

const text = readFileSync('docker-compose.yml', 'utf8');
const compose = load(text) as {
  'x-atrium': { environment: Record<string, string> };
  services: Record<string, { build?: object; cap_drop?: string[]; security_opt?: string[]; healthcheck?: object }>;
};
const { services } = compose;
const example = new Set([...readFileSync('.env.example', 'utf8').matchAll(/^(\w+)=/gm)].map(([, name = '']) => name));

test('docker-compose.yml sets only variables that exist', () => {
  const names = Object.keys(compose['x-atrium'].environment);
  expect(names.filter((name) => !settingNames.includes(name))).toEqual([]);
});

test('.env.example has the variables that docker-compose.yml reads without a default, and no unused ones', () => {
  const read = [...text.matchAll(/\$\{(\w+)(:-([^}]*))?/g)].map(([, name = '', , fallback = '']) => ({
    name,
    fallback,
  }));
  expect(read.filter(({ name, fallback }) => fallback === '' && !example.has(name))).toEqual([]);
  const names = new Set(read.map(({ name }) => name));
  expect([...example].filter((name) => !names.has(name))).toEqual([]);
});

test('The host service is built with bubblewrap, has no privilege, and is allowed what sandboxes need', () => {
  const { host } = services;
  const stage = /^FROM product AS host$([\s\S]*?)^FROM /m.exec(readFileSync('Dockerfile', 'utf8'))?.[1];
  expect(host?.build).toMatchObject({ target: 'host' });
  expect(stage).toMatch(/ bubblewrap /);
  expect(stage).toMatch(/^USER node$/m);
  expect(host?.cap_drop).toEqual(['ALL']);
  const unconfined = ['seccomp', 'apparmor', 'systempaths'].map((name) => `${name}=unconfined`);
  expect(host?.security_opt).toEqual(['no-new-privileges:true', ...unconfined]);
  for (const [name, { security_opt: options }] of Object.entries(services)) {
    if (name !== 'host') expect(options).toBeUndefined();
  }
});

test('Every service that keeps running has a health check', () => {
  const ends = ['migrate', 'bucket', 'backup'];
  const silent = Object.entries(services).filter(([, { healthcheck }]) => healthcheck === undefined);
  expect(silent.map(([name]) => name).toSorted()).toEqual(ends.toSorted());
});

test('The object store has an address of its own for clients, which open signed links', () => {
  expect(compose['x-atrium'].environment.ATRIUM_S3_PUBLIC_ENDPOINT).toMatch(/localhost/);
});
