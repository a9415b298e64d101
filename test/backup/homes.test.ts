import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { storeHomes } from '../../backup/make/homesPart.ts';
import { loadHomes } from '../../backup/restore/homesPart.ts';
import { loadConfig } from '../../config/index.ts';
import { btrfsDisks } from '../../integrations/computers/host/disks/btrfs.ts';
import { computerLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { readRecord, writeRecord } from '../../integrations/computers/host/records.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';
import { stackEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';

const { signal } = new AbortController();
const limits = { cpuMilli: 1_000, memoryMiB: 256, diskMiB: 256, maxTasks: 10, maxProcesses: 5, maxLogBytes: 1_000 };

/** A host whose homes are ordinary folders, with one computer. */
function buildHostFolder() {
  const dir = temporaryFolder();
  const layout = hostLayout(dir);
  writeFileSync(layout.identity, JSON.stringify({ hostId: 'hst_1' }));
  writeRecord(layout, { computerId: 'cmp_1', uid: null, limits, spaceId: 'spc_1', run: null });
  const { home } = computerLayout(layout, 'cmp_1');
  mkdirSync(home, { recursive: true });
  return { dir, home };
}

test('a home comes back with its links, rights and holes, and nothing is followed out of it', async () => {
  const { dir, home } = buildHostFolder();
  const outside = join(temporaryFolder(), 'outside');
  writeFileSync(outside, 'not of this home');
  mkdirSync(join(home, 'a'), { mode: 0o500 });
  writeFileSync(join(home, 'run.sh'), 'echo', { mode: 0o750 });
  symlinkSync(outside, join(home, 'link'));
  execFileSync('truncate', ['--size', '64M', join(home, 'holes')]);
  execFileSync('mkfifo', [join(home, 'pipe')]);
  const { vault } = await buildVault();
  const { homes, gaps } = await storeHomes({ vault, dir, signal });
  expect(gaps).toEqual([]);
  expect(vault.counts.newBytes).toBeLessThan(100_000);
  expect(homes?.computers).toMatchObject([{ computerId: 'cmp_1', spaceId: 'spc_1', limits }]);

  const other = temporaryFolder();
  const config = loadConfig({ ...stackEnvironment(), ATRIUM_COMPUTERS_DIR: other, ATRIUM_COMPUTERS_IMAGE_MIB: '512' });
  const layout = hostLayout(other);
  try {
    const manifest = { ...manifestOf({ at: '', homes }), format: 1 as const };
    await loadHomes(manifest, { vault, config, signal });
    await loadHomes(manifest, { vault, config, signal }); // as after an attempt that was killed at its end
    expect(JSON.parse(readFileSync(layout.identity, 'utf8'))).toEqual({ hostId: 'hst_1' });
    expect(readRecord(layout, 'cmp_1')).toMatchObject({ limits, spaceId: 'spc_1', run: null });
    if (existsSync(layout.image)) await btrfsDisks(layout);
    const back = computerLayout(layout, 'cmp_1').home;
    expect(readlinkSync(join(back, 'link'))).toBe(outside);
    expect(statSync(join(back, 'run.sh')).mode & 0o777).toBe(0o750);
    expect(statSync(join(back, 'a')).mode & 0o777).toBe(0o500);
    expect(statSync(join(back, 'holes'))).toMatchObject({ size: 64 * 1_048_576 });
    expect(lstatSync(join(back, 'pipe')).isFIFO()).toBe(true);
    const uid = readRecord(layout, 'cmp_1')?.uid ?? process.getuid?.();
    for (const name of ['run.sh', 'link', 'holes']) expect(lstatSync(join(back, name)).uid).toBe(uid);
  } finally {
    if (existsSync(layout.image)) execFileSync('umount', [layout.homes]);
  }
});

test('without computers there is nothing, and a home that cannot be read is a gap', async () => {
  const { vault } = await buildVault();
  expect(await storeHomes({ vault, dir: temporaryFolder(), signal })).toEqual({ homes: null, gaps: [] });
  const { dir } = buildHostFolder();
  const broken = { store: async () => Promise.reject(new Error('read error')) } as unknown as typeof vault;
  expect(await storeHomes({ vault: broken, dir, signal })).toMatchObject({
    homes: { hostId: 'hst_1', computers: [] },
    gaps: ['the home of cmp_1 (read error)'],
  });
});
