import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { oldQuotas } from '../../../integrations/computers/host/disks/quotas.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { buildHost, computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { type FiledSave, startHostProcess } from '../../builders/hostProcess.ts';
import { contentOf, cutOff, filling, readSave, saveHome, savesIn } from '../../builders/saves.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;

describe('saves from which a home is filled', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: fills of homes: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('that come only in part make no home, and a repeated fill goes on behind the last whole one', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one; head -c 1000000 /dev/urandom > big');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    await runOn(client, 'echo two > two; head -c 1000000 /dev/urandom > big');
    const second = await saveHome(one.host, computerId, 'hsv_2', 'hsv_1');
    const spec = computerSpec({ computerId, generation: 2 });
    for (const chain of [[cutOff(first)], [first, cutOff(second)]]) {
      await expect(two.host.saves.fill(computerId, chain, filling)).rejects.toThrow('the store is away');
      expect(await two.host.inspect(computerId)).toEqual({ state: 'absent' });
      expect(await two.host.list()).toEqual([]);
      await expect(two.host.start(spec)).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
      await expect(two.host.files(computerId)).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
      expect(await two.host.saves.changed()).toEqual([]);
    }
    expect(two.host.saves.kept(computerId)).toEqual(['hsv_1']);
    const unread = (): never => {
      throw new Error('it was read again');
    };
    await two.host.saves.fill(computerId, [{ ...first, open: unread }, second], filling);
    await two.host.saves.fill(computerId, [{ ...first, open: unread }], filling); // the home is there
    expect(contentOf(two.dir, computerId)).toBe(contentOf(one.dir, computerId));
    await two.host.start(spec);
  });

  it('that came only in part are forgotten for a computer that has none any more, and logs stay', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    await runOn(client, 'echo two > two; head -c 1000000 /dev/urandom > big');
    const chain = [first, cutOff(await saveHome(one.host, computerId, 'hsv_2', 'hsv_1'))];
    await two.host.saves.forgetFill(computerId); // nothing is there yet
    expect(await two.host.inspect(computerId)).toEqual({ state: 'absent' });
    for (const generation of [2, 3]) {
      await expect(two.host.saves.fill(computerId, chain, filling)).rejects.toThrow('the store is away');
      const spec = computerSpec({ computerId, generation });
      await expect(two.host.start(spec)).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
      await two.host.saves.forgetFill(computerId);
      await two.host.saves.forgetFill(computerId);
      expect(await two.host.inspect(computerId)).toEqual({ state: 'absent' });
      expect(savesIn(two.dir)).toEqual([]);
      await two.host.start(spec);
      const on = two.host.client(computerId);
      expect((await runOn(on, 'ls; echo made > file', { processId: `prc_${generation}` })).stdout).toBe('');
      await two.host.saves.forgetFill(computerId); // the host has the computer
      expect((await runOn(on, 'cat file')).stdout).toBe('made\n');
      await two.host.stop(computerId);
      // As after the loss of the image.
      rmSync(computerLayout(hostLayout(two.dir), computerId).home, { recursive: true });
    }
    await two.host.saves.forgetFill(computerId);
    await two.host.start(computerSpec({ computerId, generation: 4 }));
    expect(await two.host.client(computerId).process('prc_2')).toMatchObject({ state: 'exited' });
  });

  it('make no home when their host is killed meanwhile, and do so at the next attempt', async () => {
    await using one = await buildHost(options);
    const killed = await startHostProcess(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one');
    const saves = [await saveHome(one.host, computerId, 'hsv_1')];
    await runOn(client, 'head -c 3000000 /dev/urandom > big');
    saves.push(await saveHome(one.host, computerId, 'hsv_2', 'hsv_1'));
    const [first, second] = saves.map(({ bytes, open: _, ...save }) => {
      const file = join(one.dir, save.saveId);
      writeFileSync(file, bytes);
      return { ...save, file };
    }) as [FiledSave, FiledSave];
    const { signal: _, ...given } = filling;
    const cut = killed.saves.fillFrom(computerId, [first, { ...second, most: 1_000_000 }], given).catch(() => 'cut');
    await waitFor('the second save', () => savesIn(killed.dir).some((path) => path.endsWith('hsv_2.fork/home/big')));
    await killed.kill();
    expect(await cut).toBe('cut');
    await using again = await startHostProcess({ ...options, dir: killed.dir });
    expect(await again.host.inspect(computerId)).toEqual({ state: 'absent' });
    const spec = computerSpec({ computerId, generation: 2 });
    await expect(again.host.start(spec)).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
    expect(savesIn(killed.dir).filter((path) => path.includes('hsv_2'))).toEqual([]);
    await again.saves.fillFrom(computerId, [{ ...first, file: '/none' }, second], given); // the first is not read again
    expect(contentOf(again.dir, computerId)).toBe(contentOf(one.dir, computerId));
    await again.host.start(spec);
    // What nobody filled is removed as well.
    await again.host.destroy(computerId);
    expect(savesIn(again.dir)).toEqual([]);
  });

  it('keep set-user-ID bits through every move and every copy', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    await using three = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo > user; echo > group; chmod 4755 user; chmod 2755 group');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    await two.host.saves.fill(computerId, [first], filling);
    // Each computer has a user of its own, whom its files are given to.
    await two.host.start(computerSpec({ computerId, generation: 2 }));
    const copyId = `${computerId}_copy`;
    await two.host.fork(computerId, { computerId: copyId, limits: usualLimits });
    for (const id of [computerId, copyId]) {
      const [parentId = null] = two.host.saves.kept(id);
      const next = await saveHome(two.host, id, `hsv_${id}`, parentId);
      await three.host.saves.fill(id, parentId === null ? [next] : [first, next], filling);
      await three.host.start(computerSpec({ computerId: id, generation: 3 }));
      expect((await runOn(three.host.client(id), 'stat -c %a user group')).stdout).toBe('4755\n2755\n');
    }
  });

  it('replace the home of a stopped computer, and leave it as it is if they come only in part', async () => {
    await using one = await buildHost(options);
    const { host, dir } = one;
    const { client, computerId, spec } = await startComputer(host);
    await runOn(client, 'echo one > one');
    const first = await saveHome(host, computerId, 'hsv_1');
    await runOn(client, 'rm one; echo two > two');
    await host.saves.keepOnly(computerId, []);
    const replacing = { ...filling, replaces: true };
    await expect(host.saves.fill(computerId, [first], replacing)).rejects.toMatchObject({ code: 'HOME_IN_USE' });
    await host.stop(computerId);
    expect((await (await host.files(computerId)).statFile('two')).size).toBe(4); // its sandbox stays open
    const before = contentOf(dir, computerId);
    await host.saves.fill(computerId, [first], filling);
    await expect(host.saves.fill(computerId, [cutOff(first)], replacing)).rejects.toThrow('the store is away');
    expect(contentOf(dir, computerId)).toBe(before);
    await host.saves.fill(computerId, [first], replacing);
    await host.start({ ...spec, generation: 2 });
    expect((await runOn(client, 'ls')).stdout).toBe('one\n');
  });

  it('for which there is no room make no home, and other computers and their saves stay as they are', async () => {
    await using one = await buildHost(options);
    await using small = await buildHost({ ...options, imageMiB: 300 });
    const limits = { ...usualLimits, diskMiB: 1_000 };
    const { client, computerId } = await startComputer(one.host, { limits });
    await runOn(client, 'head -c 400000000 /dev/urandom > big');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    const other = await startComputer(small.host);
    const filler = await startComputer(small.host, { limits });
    await runOn(other.client, 'echo kept > kept');
    const kept = await saveHome(small.host, other.computerId, 'hsv_2');
    const full = { code: 'NO_ROOM_FOR_HOME' };
    const received: string[] = [];
    const unknown = { ...first, saveId: 'hsv_0', homeBytes: 0 }; // found out only when the image is full
    for (const save of [first, unknown]) {
      const open = () => {
        received.push(save.saveId);
        return save.open(filling.signal);
      };
      const filled = small.host.saves.fill(computerId, [{ ...save, open }], { ...filling, limits });
      await expect(filled).rejects.toMatchObject(full);
      expect(await small.host.inspect(computerId)).toEqual({ state: 'absent' });
      expect(small.host.saves.kept(computerId)).toEqual([]);
    }
    expect(received).toEqual(['hsv_0']);
    await small.host.destroy(computerId);
    // A save needs little room. Where there is none, the earlier one stays.
    await runOn(filler.client, 'head -c 600000000 /dev/zero > big; sync');
    const taken = small.host.saves.take(other.computerId, 'hsv_3').then(
      () => ['hsv_2', 'hsv_3'],
      (error: { code: string }) => error.code === 'DISK_FULL' && ['hsv_2'],
    );
    expect(await taken).toEqual(small.host.saves.kept(other.computerId));
    expect((await readSave(small.host, other.computerId, 'hsv_2')).equals(kept.bytes)).toBe(true);
    await small.host.destroy(filler.computerId);
    expect((await runOn(other.client, 'cat kept')).stdout).toBe('kept\n');
    // The file system takes a moment to free what was removed.
    await waitFor('room', async () => (await runOn(other.client, 'echo more > more && sync')).exitCode === 0);
  });

  it('of no computer, and those not taken or received completely, are removed by the next host', async () => {
    const one = await buildHost(options);
    const { computerId } = await startComputer(one.host);
    await one.host.saves.take(computerId, 'hsv_1');
    const { saves, snapshots } = hostLayout(one.dir);
    for (const use of ['cmp_gone/hsv_3', 'cmp_gone/hsv_1', `${computerId}/hsv_5`]) {
      mkdirSync(join(saves, use), { recursive: true });
    }
    for (const folder of ['hsv_2.fork', 'hsv_3', 'hsv_4']) makeVolume(join(snapshots, folder));
    await one.host.close();
    await using again = await buildHost({ ...options, dir: one.dir });
    expect(readdirSync(saves)).toEqual([computerId]);
    expect(readdirSync(snapshots)).toEqual(['hsv_1']);
    expect(again.host.saves.kept(computerId)).toEqual(['hsv_1']);
    expect(await again.host.saves.changed()).toEqual([]);
    // What was used but never on the disk is taken like any other.
    await again.host.saves.take(computerId, 'hsv_5');
    expect(again.host.saves.kept(computerId)).toEqual(['hsv_1', 'hsv_5']);
  });

  it('of an earlier Atrium, with snapshots for each computer, go on', async () => {
    const one = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    const other = await startComputer(one.host);
    await runOn(client, 'head -c 3000000 /dev/urandom > big; sync');
    await one.host.saves.take(computerId, 'hsv_1');
    await one.host.close();
    const { saves, snapshots } = hostLayout(one.dir);
    rmdirSync(join(saves, computerId, 'hsv_1'));
    renameSync(join(snapshots, 'hsv_1'), join(saves, computerId, 'hsv_1'));
    rmdirSync(snapshots);
    for (const folder of [`${computerId}/hsv_2.fork`, `${other.computerId}/hsv_1`]) makeVolume(join(saves, folder));
    await using again = await buildHost({ ...options, dir: one.dir });
    expect(readdirSync(snapshots)).toEqual(['hsv_1']);
    const { saves: kept } = again.host;
    expect([kept.kept(computerId), kept.kept(other.computerId)].flat()).toEqual(['hsv_1']);
    expect(await kept.changed()).toEqual([other.computerId]);
    await runOn(client, 'echo two > two');
    expect((await saveHome(again.host, computerId, 'hsv_2', 'hsv_1')).bytes.length).toBeLessThan(5_000);
  });
});

function makeVolume(folder: string): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('btrfs', ['subvolume', 'create', join(folder, 'home')]);
  writeFileSync(join(folder, 'home/file'), 'part');
}

test('the quotas of deleted homes are found, as older kernels list them', () => {
  const quotas = `Qgroupid    Referenced    Exclusive   Path
--------    ----------    ---------   ----
0/5              16384        16384   <toplevel>
0/256         20383744        20480   cmp_1
0/284         20373504        16384   <under deletion>
0/285            16384        16384   <stale>
0/290            16384        16384   .snapshots/hsv_1/home
1/100                0            0   <0 member qgroups>
`;
  const volumes = `ID 256 gen 60 top level 5 path cmp_1
ID 290 gen 60 top level 5 path .snapshots/hsv_1/home
ID 284 gen 60 top level 0 path DELETED
`;
  expect(oldQuotas(quotas, volumes)).toEqual(['0/285']);
});
