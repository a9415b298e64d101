import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closePipes, Pipes } from '../../../integrations/computers/agent/processes/pipes.ts';

test('as many programs as start at once get their pipes, each its own', async () => {
  const pipes = new Pipes();
  const taken = await Promise.all(Array.from({ length: 60 }, () => pipes.take('in', 'out', 'out')));
  const descriptors = taken.flat().flatMap(({ ours, childs }) => [ours, childs]);
  expect(new Set(descriptors).size).toBe(60 * 3 * 2);
  for (const each of taken) closePipes(each);
});

test('those that somebody else makes are taken, and nothing of them is left, even where they come late', async () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'atrium-pipes-')), 'first');
  const taken = new Pipes(folder).take('in', 'out');
  mkdirSync(folder);
  execFileSync(
    'mkfifo',
    Array.from({ length: 12 }, (_, at) => join(folder, String(at))),
  );
  closePipes(await taken);
  expect(existsSync(folder)).toBe(false);
});
