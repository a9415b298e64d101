import { readdirSync } from 'node:fs';
import type { StoredSave } from '../../../integrations/computers/host/host.ts';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { buildHost, computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { contentOf, cutOff, filling, type ReadSave, readSave, saveHome, savesIn } from '../../builders/saves.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;

/** A save whose bytes no host may read. */
const unread = (save: Omit<StoredSave, 'open'>): StoredSave => ({
  ...save,
  open() {
    throw new Error('it was read');
  },
});

/** A save that counts how often its bytes are read. */
function counted(save: ReadSave, opened: string[]) {
  const open = (signal: AbortSignal) => {
    opened.push(save.saveId);
    return save.open(signal);
  };
  return { ...save, open };
}

const snapshotsIn = (dir: string) => readdirSync(hostLayout(dir).snapshots).toSorted();

describe('saves that several computers of a host use', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: shared saves: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('are not read again, and stay until the last of them lets go', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { host, dir } = one;
    const { client, computerId } = await startComputer(host);
    await runOn(client, 'echo one > one; head -c 3000000 /dev/urandom > big');
    const first = await saveHome(host, computerId, 'hsv_1');
    const copies = [computerSpec(), computerSpec()];
    for (const copy of copies) {
      await host.saves.fill(copy.computerId, [unread(first)], filling);
      expect(contentOf(dir, copy.computerId)).toBe(contentOf(dir, computerId));
    }
    expect(snapshotsIn(dir)).toEqual(['hsv_1']);
    const [copy, other] = copies.map((spec) => spec.computerId) as [string, string];
    await host.saves.keepOnly(computerId, []);
    await host.destroy(other);
    await host.destroy(computerId);
    expect(host.saves.kept(copy)).toEqual(['hsv_1']);
    // The change of a copy follows the save of the first computer, on every host.
    await host.start(computerSpec({ computerId: copy }));
    await runOn(host.client(copy), 'cat one; echo two > two');
    const second = await saveHome(host, copy, 'hsv_2', 'hsv_1');
    expect(second.bytes.length).toBeLessThan(20_000);
    await two.host.saves.fill(copy, [first, second], filling);
    expect(contentOf(two.dir, copy)).toBe(contentOf(dir, copy));
    await host.saves.keepOnly(copy, ['hsv_2']);
    expect(snapshotsIn(dir)).toEqual(['hsv_2']);
    await host.destroy(copy);
    expect(savesIn(dir)).toEqual([]);
  });

  it('are received once, although their computers are filled at the same time', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'head -c 3000000 /dev/urandom > big');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    await runOn(client, 'echo two > two');
    const second = await saveHome(one.host, computerId, 'hsv_2', 'hsv_1');
    const opened: string[] = [];
    const chain = [first, second].map((save) => counted(save, opened));
    const ids = [1, 2, 3].map(() => computerSpec().computerId);
    await Promise.all(ids.map((id) => two.host.saves.fill(id, chain, filling)));
    expect(opened).toEqual(['hsv_1', 'hsv_2']);
    for (const id of ids) expect(contentOf(two.dir, id)).toBe(contentOf(one.dir, computerId));
    expect(snapshotsIn(two.dir)).toEqual(['hsv_1', 'hsv_2']);
  });

  it('are received by the next computer if the first one gives up', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'head -c 3000000 /dev/urandom > big');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    const opened: string[] = [];
    const stuck = {
      ...first,
      async *open(signal: AbortSignal) {
        opened.push('stuck');
        yield first.bytes.subarray(0, 1_000_000);
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    };
    const [early, late, given] = [computerSpec(), computerSpec(), new AbortController()];
    const filling1 = two.host.saves.fill(early.computerId, [stuck], { ...filling, signal: given.signal });
    const ended = filling1.then(
      () => 'filled',
      (error: Error) => error.message,
    );
    await waitFor('the first one to receive', () => opened.length > 0);
    const filling2 = two.host.saves.fill(late.computerId, [counted(first, opened)], filling);
    given.abort(new Error('nobody wants it any more'));
    expect(await ended).toBe('nobody wants it any more');
    await filling2;
    expect(opened).toEqual(['stuck', 'hsv_1']);
    expect(contentOf(two.dir, late.computerId)).toBe(contentOf(one.dir, computerId));
    // One whose bytes end early is no snapshot for anybody.
    const third = { ...first, saveId: 'hsv_3' };
    await expect(two.host.saves.fill(early.computerId, [cutOff(third)], filling)).rejects.toThrow('the store is away');
    expect(snapshotsIn(two.dir)).toEqual(['hsv_1']);
  });

  it('are what the saves of a fork follow', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const { host, dir } = one;
    const { client, computerId } = await startComputer(host);
    await runOn(client, 'head -c 3000000 /dev/urandom > big');
    const first = await saveHome(host, computerId, 'hsv_1');
    await runOn(client, 'echo two > two');
    const fork = computerSpec();
    await host.fork(computerId, fork);
    expect(host.saves.kept(fork.computerId)).toEqual(['hsv_1']);
    expect(await host.saves.changed()).toEqual(expect.arrayContaining([computerId, fork.computerId]));
    const second = await saveHome(host, fork.computerId, 'hsv_2', 'hsv_1');
    expect(second.bytes.length).toBeLessThan(20_000);
    await two.host.saves.fill(fork.computerId, [first, second], filling);
    expect(contentOf(two.dir, fork.computerId)).toBe(contentOf(dir, computerId));
  });

  it('need no room for a copy', async () => {
    await using one = await buildHost({ ...options, imageMiB: 700 });
    const limits = { ...usualLimits, diskMiB: 600 };
    const { client, computerId } = await startComputer(one.host, { limits });
    await runOn(client, 'head -c 350000000 /dev/urandom > big');
    const { takenAt: _, ...taken } = await one.host.saves.take(computerId, 'hsv_1');
    const copy = computerSpec().computerId;
    await one.host.saves.fill(copy, [unread({ ...taken, saveId: 'hsv_1' })], { ...filling, limits });
    expect(contentOf(one.dir, copy)).toBe(contentOf(one.dir, computerId));
    const elsewhere = unread({ ...taken, saveId: 'hsv_2' });
    const unfilled = one.host.saves.fill(computerSpec().computerId, [elsewhere], { ...filling, limits });
    await expect(unfilled).rejects.toMatchObject({ code: 'NO_ROOM_FOR_HOME' });
  });

  it('stay without a computer while that is asked, also for the next host of the folder', async () => {
    const one = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    await one.host.saves.take(computerId, 'hsv_2');
    await one.host.saves.keep(['hsv_1', 'hsv_elsewhere']);
    await one.host.destroy(computerId);
    expect(snapshotsIn(one.dir)).toEqual(['hsv_1']);
    await one.host.close();
    await using again = await buildHost({ ...options, dir: one.dir });
    const { host } = again;
    const copy = computerSpec().computerId;
    await host.saves.fill(copy, [unread(first)], filling);
    // It has the user that the home had, so nothing in it has changed.
    expect(await host.saves.changed()).toEqual([]);
    expect((await readSave(host, copy, 'hsv_1')).equals(first.bytes)).toBe(true);
    await host.saves.keep([]);
    expect(snapshotsIn(one.dir)).toEqual(['hsv_1']);
    await host.destroy(copy);
    expect(savesIn(one.dir)).toEqual([]);
  });
});
