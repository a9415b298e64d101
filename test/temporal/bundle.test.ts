import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflows } from '../../temporal/bundle.ts';
import { temporaryFolder } from '../support/folders.ts';

function keptIn(folder: string): string {
  const [name = ''] = readdirSync(folder);
  return join(folder, name);
}

test('A damaged bundle in the cache is built again', async () => {
  const folder = temporaryFolder();
  const { code } = await bundleWorkflows(folder);
  const kept = readFileSync(keptIn(folder), 'utf8');
  expect(kept).toContain(code);

  for (const damaged of [kept.slice(0, -100), kept.replace('function', 'functiom'), '']) {
    writeFileSync(keptIn(folder), damaged);
    expect((await bundleWorkflows(folder)).code.length).toBe(code.length);
    expect(readFileSync(keptIn(folder), 'utf8') === kept).toBe(true);
  }
});

test('Workflows are built even if the cache folder cannot be made', async () => {
  const file = join(temporaryFolder(), 'file');
  writeFileSync(file, '');
  const inside = join(file, 'cache');
  expect((await bundleWorkflows(inside)).code).toContain('function');
  expect(existsSync(inside)).toBe(false);
});
