import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isReachableByOthers, prepareDataDir, prepareServicesDir, removeDataDir } from '../../stack/folders.ts';
import { temporaryFolder } from '../support/folders.ts';

const asRoot = process.getuid?.() === 0;

test('other users cannot reach a folder inside a private folder', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'inner'));
  expect(isReachableByOthers(join(folder, 'inner'))).toBe(true);
  chmodSync(folder, 0o700);
  expect(isReachableByOthers(join(folder, 'inner'))).toBe(false);
});

test('each start gives services the same folder, which their users can reach', () => {
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

test('a start fails if the services folder is a link to missing data', () => {
  const dataDir = temporaryFolder();
  prepareDataDir(dataDir);
  symlinkSync(join(dataDir, 'gone'), join(dataDir, 'services'));
  expect(() => prepareServicesDir(dataDir)).toThrow('is a link to data that are not there');
});

test('the error for a data directory that cannot be created says why, and names the setting to change', () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const advice = 'is a file, not a folder. Move it away, or set ATRIUM_DATA_DIR to a folder.';
  expect(() => prepareDataDir(file)).toThrow(`The data directory ${file} ${advice}`);
  expect(() => prepareDataDir(join(file, 'data'))).toThrow(`${file}, above the data directory ${file}/data, ${advice}`);
  // Here mkdir says ENOENT although the parent exists.
  expect(() => prepareDataDir('/proc/data')).toThrow('/proc/data cannot be written (ENOENT). Set ATRIUM_DATA_DIR');
});
