import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDurably, folderOf, makeFolderDurably, writeDurably } from '../../disk/durable.ts';
import { diskCallsOf } from '../support/diskCalls.ts';
import { temporaryFolder } from '../support/folders.ts';

const root = JSON.stringify(join(import.meta.dirname, '..', '..', 'disk', 'durable.ts'));
const callsOf = (work: (folder: string) => string) =>
  diskCallsOf(`import * as disk from ${root}; ${work(JSON.stringify(temporaryFolder()))}`);

test('a file is synced before it gets its name, and its folder afterwards', () => {
  const whole = ['fsync', 'rename', 'fsync'];
  expect(callsOf((folder) => `await disk.writeDurably(${folder} + '/file', 'text');`)).toEqual(whole);
  expect(callsOf((folder) => `disk.writeDurablySync(${folder} + '/file', 'text');`)).toEqual(whole);
  expect(callsOf((folder) => `await disk.createDurably(${folder} + '/file', 'text');`)).toEqual([
    'fsync',
    'link',
    'unlink',
    'fsync',
  ]);
});

test('a new folder is synced with its parent, and so are new folders above it', () => {
  const made = ['mkdir', 'fsync'];
  const below = callsOf((folder) => `await disk.makeFolderDurably(${folder} + '/a/b');`);
  expect(below.filter((call) => call === 'fsync')).toHaveLength(2);
  expect(below.slice(-2)).toEqual(made);
  // The folder, then the one above it, then the folder again.
  const belowSync = callsOf((folder) => `disk.makeFolderDurablySync(${folder} + '/a/b');`);
  expect(belowSync).toEqual(['mkdir', 'mkdir', ...made.slice(1), ...made]);
});

test('a folder is synced with its contents before it is renamed', () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'new', 'sub'), { recursive: true });
  writeFileSync(join(folder, 'new', 'sub', 'file'), 'text');
  const [from, to] = [join(folder, 'new'), join(folder, 'done')].map((path) => JSON.stringify(path));
  const calls = diskCallsOf(`import * as disk from ${root}; disk.renameDurablySync(${from}, ${to});`);
  expect(calls).toEqual(['fsync', 'fsync', 'fsync', 'rename', 'fsync']);
});

test('only one of several simultaneous calls creates a file, and no temporary file is left', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'file');
  const made = await Promise.all(['a', 'b', 'c', 'd'].map((text) => createDurably(file, text)));
  expect(made.filter(Boolean)).toHaveLength(1);
  expect(readFileSync(file, 'utf8')).toMatch(/^[abcd]$/);
  expect(readdirSync(folder)).toEqual(['file']);
});

test('a file that cannot be renamed leaves no temporary file', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'taken', 'full'), { recursive: true });
  await expect(writeDurably(join(folder, 'taken'), 'text')).rejects.toThrow();
  expect(readdirSync(folder)).toEqual(['taken']);
});

test('makeFolderDurably accepts an existing folder and names that are not UTF-8, and fails at a file', async () => {
  const folder = temporaryFolder();
  await makeFolderDurably(folder);
  writeFileSync(join(folder, 'file'), '');
  await expect(makeFolderDurably(join(folder, 'file'))).rejects.toThrow('EEXIST');
  await expect(makeFolderDurably(join(folder, 'file', 'below'))).rejects.toThrow('ENOTDIR');
  // Here mkdir says ENOENT although the parent exists.
  await expect(makeFolderDurably('/proc/none/below')).rejects.toThrow('ENOENT');
  const bytes = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0x2f, 0xfe])]);
  await makeFolderDurably(bytes);
  expect(existsSync(bytes)).toBe(true);
});

test.each([
  ['/a/b', '/a'],
  ['/a/b/', '/a'],
  ['/a', '/'],
  ['/', '/'],
  ['a', '.'],
])('the folder of %s is %s', (path, folder) => expect(folderOf(path)).toBe(folder));
