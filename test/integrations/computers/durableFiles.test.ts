import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { diskCallsOf } from '../../support/diskCalls.ts';
import { temporaryFolder } from '../../support/folders.ts';

/** The agent of a computer syncs a change before it answers. */
const agent = join(import.meta.dirname, '..', '..', '..', 'integrations', 'computers', 'agent', 'files');
const modules = ['writeFile', 'paths']
  .map((name) => `import * as ${name} from ${JSON.stringify(join(agent, `${name}.ts`))};`)
  .join('\n');

function callsIn(folder: string, work: string): string[] {
  const at = `const at = (name) => Buffer.from(${JSON.stringify(folder)} + '/' + name);`;
  return diskCallsOf(`${modules}\nimport { Readable } from 'node:stream';\n${at}\n${work}`);
}

const write = (name: string, options = '{}') =>
  `writeFile.writeFileFrom(Readable.from([Buffer.from('text')]), at('${name}'), ${options})`;

test('a written file is synced and renamed, and its folder is synced, before the answer', () => {
  expect(callsIn(temporaryFolder(), `await ${write('file')};`)).toEqual(['fsync', 'rename', 'fsync']);
});

test('new parent folders of a file are synced with their own parents', () => {
  const calls = callsIn(temporaryFolder(), `await ${write('a/b/file', '{ parents: true }')};`);
  expect(calls.filter((call) => call === 'fsync')).toHaveLength(4);
  expect(calls.slice(-3)).toEqual(['fsync', 'rename', 'fsync']);
});

test.each([
  ['deleted', `paths.deletePath(at('old'), { recursive: false })`, ['unlink', 'fsync']],
  ['moved', `paths.movePath(at('old'), at('sub/new'), { replace: true })`, ['rename', 'fsync', 'fsync']],
  ['made', `paths.makeFolder(at('folder'), { parents: false })`, ['mkdir', 'fsync']],
  ['emptied and deleted', `paths.deletePath(at('sub'), { recursive: true })`, ['fsync']],
])('a path that is %s is synced before the answer', (_, work, calls) => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'old'), 'text');
  expect(callsIn(folder, `await ${work};`)).toEqual(calls);
});
