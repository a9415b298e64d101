import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { storeHomes } from '../../backup/make/homesPart.ts';
import { loadHomes } from '../../backup/restore/homesPart.ts';
import { loadConfig } from '../../config/index.ts';
import { btrfsDisks, isMounted } from '../../integrations/computers/host/disks/btrfs.ts';
import { computerLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { readRecord, writeRecord } from '../../integrations/computers/host/records.ts';
import { reportHost } from '../../models/computers/hosts.ts';
import type { Database } from '../../models/database/database.ts';
import { buildVault, manifestOf } from '../builders/backups.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { inFull } from '../support/inFull.ts';

const full = inFull('backup');

const { signal } = new AbortController();

let environment: TestEnvironment;
let database: Database;
beforeAll(async () => {
  environment = await createTestEnvironment();
  ({ database } = environment);
});
afterAll(() => environment.close());

const limits = { cpuMilli: 1_000, memoryMiB: 256, diskMiB: 256, maxTasks: 10, maxProcesses: 5, maxLogBytes: 1_000 };

/** The folder of a host with one computer, whose home is an ordinary folder. */
function buildHostFolder() {
  const dir = temporaryFolder();
  const layout = hostLayout(dir);
  writeFileSync(layout.identity, JSON.stringify({ hostId: 'hst_1' }));
  writeRecord(layout, { computerId: 'cmp_1', uid: null, limits, spaceId: 'spc_1', run: null });
  const { home } = computerLayout(layout, 'cmp_1');
  mkdirSync(home, { recursive: true });
  return { dir, home };
}

test('a restored home has its links, rights and holes, and links out of the home are not followed', async () => {
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
  const host = { id: 'hst_1', address: null, drivers: [], cpuMilli: 1_000, memoryMiB: 1_000, maxRunning: 1 };
  await reportHost(database, host);
  const layout = hostLayout(other);
  try {
    const manifest = { ...manifestOf({ at: '', homes }), format: 1 as const };
    await loadHomes(manifest, { vault, config, database, signal });
    await loadHomes(manifest, { vault, config, database, signal }); // as if the first attempt was killed at its end
    // The restored host gets a new id, since the original may still run here.
    const { hostId } = JSON.parse(readFileSync(layout.identity, 'utf8')) as { hostId: string };
    expect(hostId).not.toBe('hst_1');
    const [hosts] = await database.pool.query('SELECT id FROM computer_hosts WHERE id IN (?)', [['hst_1', hostId]]);
    expect(hosts).toEqual([{ id: hostId }]);
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

test('a backup without computers has no homes, and a home that cannot be read is listed as a gap', async () => {
  const { vault } = await buildVault();
  expect(await storeHomes({ vault, dir: temporaryFolder(), signal })).toEqual({ homes: null, gaps: [] });
  const { dir } = buildHostFolder();
  const broken = { store: async () => Promise.reject(new Error('read error')) } as unknown as typeof vault;
  expect(await storeHomes({ vault: broken, dir, signal })).toMatchObject({
    homes: { hostId: 'hst_1', computers: [] },
    gaps: ['the home of cmp_1 (read error)'],
  });
});

test('a backup has neither saves of homes nor computers whose homes are being filled', async () => {
  const { vault } = await buildVault();
  const { dir } = buildHostFolder();
  const layout = hostLayout(dir);
  const folders = [join(layout.saves, 'cmp_1', 'hsv_1', 'home'), computerLayout(layout, 'cmp_2').home];
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'file'), randomBytes(1_000_000));
  }
  writeRecord(layout, { computerId: 'cmp_2', uid: null, limits, spaceId: 'spc_1', run: null, filling: true });
  const { homes, gaps } = await storeHomes({ vault, dir, signal });
  expect(gaps).toEqual([]);
  expect(homes?.computers.map(({ computerId }) => computerId)).toEqual(['cmp_1']);
  expect(vault.counts.newBytes).toBeLessThan(100_000);
});

/** A tar stream of one sparse file with this name. */
function tarOf(bytes: number, name = 'file'): Buffer {
  const folder = temporaryFolder();
  execFileSync('truncate', ['--size', String(bytes), join(folder, 'file')]);
  const args = ['-cf', '-', '-C', folder, `--transform=s,^file$,${name},`, 'file'];
  return execFileSync('tar', args, { maxBuffer: 2 * bytes + 1_048_576 });
}

full.test('a home that cannot be restored completely is a gap, and the other homes are restored', async () => {
  const { vault } = await buildVault();
  const store = (bytes: Buffer) =>
    vault.store(
      (async function* () {
        yield bytes;
      })(),
    );
  const tooDeep = `${'folder/'.repeat(800)}file`;
  const whole = tarOf(1_000);
  const streams = {
    cmp_huge: tarOf(270 * 1_048_576),
    cmp_deep: tarOf(1_000, tooDeep),
    // Larger than its disk's limit. Files that shared blocks on the original's disk can become so.
    cmp_over: tarOf(24 * 1_048_576),
    cmp_junk: Buffer.alloc(100_000, 'junk'),
    cmp_good: whole,
  };
  const computers = [];
  for (const [computerId, bytes] of Object.entries(streams)) {
    const content = await store(bytes);
    computers.push({ computerId, spaceId: 'spc_1', limits: { ...limits, diskMiB: 16 }, content });
  }
  const other = temporaryFolder();
  const config = loadConfig({ ...stackEnvironment(), ATRIUM_COMPUTERS_DIR: other, ATRIUM_COMPUTERS_IMAGE_MIB: '256' });
  const layout = hostLayout(other);
  const size = (id: string) => statSync(join(computerLayout(layout, id).home, 'file'), { throwIfNoEntry: false })?.size;
  try {
    const manifest = { ...manifestOf({ at: '', homes: { hostId: 'hst_1', computers } }), format: 1 as const };
    const gaps = await loadHomes(manifest, { vault, config, database, signal });
    expect(gaps).toContainEqual(
      expect.stringMatching(/^a part of the home of cmp_deep \(tar failed \(2\): .*too long/),
    );
    expect(gaps).toContainEqual(expect.stringMatching(/^a part of the home of cmp_junk \(tar failed \(2\): /));
    expect(existsSync(layout.identity)).toBe(true);
    const isLimited = existsSync(layout.image);
    if (isLimited) {
      expect(gaps).toContainEqual(expect.stringMatching(/^the home of cmp_huge, for which there is no room/));
      await btrfsDisks(layout);
    }
    expect(gaps).toHaveLength(isLimited ? 3 : 2);
    for (const gap of gaps) expect(gap.length).toBeLessThan(800);
    expect(size('cmp_good')).toBe(1_000);
    expect(size('cmp_over')).toBe(24 * 1_048_576);
    if (isLimited) expect(size('cmp_huge')).toBeUndefined();
  } finally {
    if (existsSync(layout.image) && isMounted(layout.homes)) execFileSync('umount', [layout.homes]);
  }
});

test('a restore fails if the backup folder cannot be read', async () => {
  const { vault, backup } = await buildVault();
  const { dir } = buildHostFolder();
  const { homes } = await storeHomes({ vault, dir, signal });
  rmSync(join(backup.to, 'pieces'), { recursive: true });
  const other = temporaryFolder();
  const config = loadConfig({ ...stackEnvironment(), ATRIUM_COMPUTERS_DIR: other, ATRIUM_COMPUTERS_IMAGE_MIB: '256' });
  const manifest = { ...manifestOf({ at: '', homes }), format: 1 as const };
  try {
    await expect(loadHomes(manifest, { vault, config, database, signal })).rejects.toThrow(/is missing/);
  } finally {
    const { image, homes: mounted } = hostLayout(other);
    if (existsSync(image) && isMounted(mounted)) execFileSync('umount', [mounted]);
  }
});

test('a home whose stream is far longer than its disk is listed as a gap', async () => {
  const { vault } = await buildVault();
  const { dir, home } = buildHostFolder();
  writeRecord(hostLayout(dir), {
    computerId: 'cmp_1',
    uid: null,
    limits: { ...limits, diskMiB: -511 }, // for a bound of 2 MiB
    spaceId: 'spc_1',
    run: null,
  });
  writeFileSync(join(home, 'file'), Buffer.alloc(3 * 1_048_576, 1));
  expect(await storeHomes({ vault, dir, signal })).toMatchObject({
    homes: { computers: [] },
    gaps: ['the home of cmp_1 (it has more than 2 MiB as a stream)'],
  });
});
