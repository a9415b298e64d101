import { cpSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { identify } from '../../../integrations/computers/host/machine/setUp.ts';
import { temporaryFolder } from '../../support/folders.ts';

// The id of a host is part of the names of its cgroups and containers.

function buildFolder() {
  const root = temporaryFolder();
  const dir = join(root, 'host');
  mkdirSync(dir);
  return { root, dir };
}

test("a host's folder keeps its id, also through a link and after a move", () => {
  const { root, dir } = buildFolder();
  const hostId = identify(hostLayout(dir));
  expect(identify(hostLayout(dir))).toBe(hostId);
  symlinkSync(dir, join(root, 'link'));
  expect(identify(hostLayout(join(root, 'link')))).toBe(hostId);
  renameSync(dir, join(root, 'moved'));
  expect(identify(hostLayout(join(root, 'moved')))).toBe(hostId);
  // A folder from an earlier version.
  mkdirSync(dir);
  writeFileSync(hostLayout(dir).identity, JSON.stringify({ hostId: 'hst_1' }));
  expect(identify(hostLayout(dir))).toBe('hst_1');
});

test("a copy of a host's folder is refused while the original exists", () => {
  const { root, dir } = buildFolder();
  const hostId = identify(hostLayout(dir));
  const copy = join(root, 'copy');
  cpSync(dir, copy, { recursive: true });
  expect(() => identify(hostLayout(copy))).toThrow(`${copy} is a copy of ${dir}, and both would be the host ${hostId}`);
  expect(identify(hostLayout(dir))).toBe(hostId);
});
