import { chmodSync, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isReachableByOthers, prepareDataDir, prepareServicesDir, removeDataDir } from '../../stack/folders.ts';
import { temporaryFolder } from '../support/folders.ts';

const asRoot = process.getuid?.() === 0;

test('a folder below a private one is not reachable by others', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'inner'));
  expect(isReachableByOthers(join(folder, 'inner'))).toBe(true);
  chmodSync(folder, 0o700);
  expect(isReachableByOthers(join(folder, 'inner'))).toBe(false);
});

test('services get a folder that their users can reach, the same one at each start', () => {
  const dataDir = join(temporaryFolder(), 'data');
  prepareDataDir(dataDir);
  chmodSync(join(dataDir, '..'), 0o700);
  const services = prepareServicesDir(dataDir);
  expect(prepareServicesDir(dataDir)).toBe(services);
  expect(services.startsWith('/var/lib/atrium/')).toBe(asRoot);
  expect(statSync(services).mode & 0o777).toBe(0o711);
  removeDataDir(dataDir);
  expect(statSync(services, { throwIfNoEntry: false })).toBeUndefined();
});

test('data that a link no longer finds are not made anew', () => {
  const dataDir = temporaryFolder();
  prepareDataDir(dataDir);
  symlinkSync(join(dataDir, 'gone'), join(dataDir, 'services'));
  expect(() => prepareServicesDir(dataDir)).toThrow('is a link to data that are not there');
});

test('a data directory that cannot be made is said in one line', () => {
  expect(() => prepareDataDir('/dev/null/data')).toThrow('set ATRIUM_DATA_DIR');
});
