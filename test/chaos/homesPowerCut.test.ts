import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { computerLayout, hostLayout } from '../../integrations/computers/host/layout.ts';
import { buildHost, computerSpec, hostDir, runOn, usualLimits } from '../builders/host.ts';
import { type FiledSave, type RemoteHost, startHostProcess } from '../builders/hostProcess.ts';
import { contentOf } from '../builders/saves.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { createPowerDisk, type PowerDisk, powerCutMissing } from '../support/powerDisk.ts';
import { seededRandom } from '../support/random.ts';
import { sizeOf } from '../support/size.ts';
import { waitFor } from '../support/waitFor.ts';

/**
 * A host of computers on a disk whose power is cut while homes are saved, filled, replaced and copied. What the host has
 * acknowledged is there afterwards, each home is as before or as after what was under way, and the saves that were
 * stored elsewhere make the same homes as before, together with those that follow.
 */
const cycles = sizeOf('HOME_POWER_CUTS', 2, 15);
/** Each kind of work has been acknowledged this many times before the power is cut. */
const fewest = 2;
const parts = 5;

const [{ missing: noDriver, options } = { missing: 'no driver', options: {} }] = drivers;
const missing = noDriver ?? (await powerCutMissing());

if (missing !== undefined) {
  test(`Skipped on this machine: ${missing}`, () => expect(missing).toBeDefined());
} else {
  jest.setTimeout(120_000 + cycles * 120_000);

  /** A save whose bytes are stored elsewhere, and how often the home had been changed by then. */
  type Stored = FiledSave & { changes: number };

  const writer = computerSpec();
  const swapped = computerSpec();
  let disk: PowerDisk;
  let store: string;
  let host: RemoteHost;
  /** From the base to the head. */
  let chain: Stored[] = [];
  let changes = 0;

  beforeAll(() => {
    disk = createPowerDisk();
    store = hostDir();
  });
  afterAll(async () => {
    await disk?.remove();
    rmSync(store, { recursive: true, force: true });
  });

  const up = async () => {
    const dir = join(disk.folder, 'computers');
    host = await startHostProcess({ ...options, imageMiB: 1_024, dir, on: disk.on });
  };
  const filling = { limits: usualLimits, spaceId: writer.spaceId };
  const homeOf = (computerId: string) => computerLayout(hostLayout(host.seenDir), computerId).home;
  const changesOf = (computerId: string) => Number(readFileSync(join(homeOf(computerId), 'changes'), 'utf8'));

  /** Changes the home of the computer that writes. The change is on the disk then. */
  async function change(): Promise<void> {
    const next = changes + 1;
    const files = `yes ${next} | head -n 40000 > part${next % parts}; echo ${next} > new; mv new changes`;
    const { exitCode } = await runOn(host.host.client(writer.computerId), `${files}; sync -f .`);
    if (exitCode !== 0) throw new Error(`The change ${next} failed.`);
    changes = next;
  }

  async function save(saveId: string): Promise<void> {
    const head = chain.at(-1);
    const parentId = head !== undefined && (await host.saves.kept(writer.computerId)).includes(head.saveId);
    const taken = await host.saves.take(writer.computerId, saveId);
    const file = join(store, saveId);
    await host.saves.readTo(file, writer.computerId, saveId, parentId ? head.saveId : null);
    chain = [...(parentId ? chain : []), { ...taken, saveId, file, changes }];
    await host.saves.keepOnly(writer.computerId, [saveId]);
  }

  /** Expects a home to be as it was after some change. */
  function expectWhole(computerId: string, after: number): void {
    expect(changesOf(computerId)).toBe(after);
    for (let number = Math.max(1, after - parts + 1); number <= after; number++) {
      const content = readFileSync(join(homeOf(computerId), `part${number % parts}`), 'utf8');
      expect(content === `${number}\n`.repeat(40_000)).toBe(true);
    }
  }

  test('Homes and their saves survive the loss of power', async () => {
    const random = seededRandom('homes');
    await up();
    await host.host.start(writer);
    await change();
    await save('hsv_first');
    await host.saves.fillFrom(swapped.computerId, chain, filling);
    let swappedTo = [changes];

    for (let cycle = 0; cycle < cycles; cycle++) {
      const failed: unknown[] = [];
      const counts = { saves: 0, fills: 0, swaps: 0, copies: 0 };
      /** Computers that are there, and how often their homes had been changed at least. */
      const made = new Map<string, number>();
      const gone: string[] = [];
      const name = (kind: string, number: number) => `${writer.computerId}_${kind}${cycle}x${number}`;
      let isOver = false;

      /** Acknowledges a computer, and removes the one before it. */
      async function replaced(kind: string, number: number, after: number): Promise<void> {
        made.set(name(kind, number), after);
        if (number === 0) return;
        made.delete(name(kind, number - 1));
        await host.host.destroy(name(kind, number - 1));
        if (!isOver) gone.push(name(kind, number - 1));
      }
      const work: Record<keyof typeof counts, (number: number) => Promise<void>> = {
        async saves(number) {
          await change();
          await save(`hsv_${cycle}x${number}`);
        },
        async fills(number) {
          const from = chain;
          await host.saves.fillFrom(name('fill', number), from, filling);
          if (!isOver) await replaced('fill', number, from.at(-1)?.changes ?? 0);
        },
        async swaps() {
          const from = chain;
          swappedTo = [...swappedTo.slice(-1), from.at(-1)?.changes ?? 0];
          await host.saves.fillFrom(swapped.computerId, from, { ...filling, replaces: true });
          if (!isOver) swappedTo = swappedTo.slice(-1);
        },
        async copies(number) {
          const before = changes;
          await host.host.fork(writer.computerId, { computerId: name('copy', number), limits: usualLimits });
          if (!isOver) await replaced('copy', number, before);
        },
      };
      const lanes = Object.entries(work).map(async ([kind, act]) => {
        for (let number = 0; !isOver; number++) {
          try {
            await act(number);
            if (!isOver) counts[kind as keyof typeof counts]++;
          } catch (error) {
            if (!isOver) failed.push(error);
            return;
          }
        }
      });
      const most = fewest + random(0, 6);
      await waitFor('all work to be acknowledged', () => {
        return failed.length > 0 || (Object.values(counts).every((each) => each >= fewest) && counts.saves >= most);
      });
      isOver = true;
      const { changes: acknowledged, chain: stored } = { changes, chain };
      await disk.cut(host.pid);
      await Promise.all(lanes);
      expect(failed).toEqual([]);
      process.stderr.write(`Cut ${cycle + 1}: ${JSON.stringify(counts)}\n`);

      await up();
      await host.host.sweep();
      const there = (await host.host.list()).map(({ computerId }) => computerId);
      expect(there).toEqual(expect.arrayContaining([writer.computerId, swapped.computerId, ...made.keys()]));
      expect(there.filter((id) => gone.includes(id))).toEqual([]);
      const homes = readdirSync(hostLayout(host.seenDir).homes).filter((name) => !name.startsWith('.'));
      expect(homes.toSorted()).toEqual(there.toSorted());
      expect(changesOf(writer.computerId)).toBeGreaterThanOrEqual(acknowledged);
      expect(swappedTo).toContain(changesOf(swapped.computerId));
      expectWhole(swapped.computerId, changesOf(swapped.computerId));
      for (const [computerId, after] of made) {
        if (computerId.includes('_fill')) expectWhole(computerId, after);
        else expect(changesOf(computerId)).toBeGreaterThanOrEqual(after);
      }

      // What was stored makes the home of that time elsewhere, and so does what follows it.
      chain = stored;
      await using elsewhere = await buildHost(options);
      const filled = async (computerId: string) => {
        const saves = chain.map(({ file, ...of }) => ({ ...of, open: () => chunksOf(file) }));
        await elsewhere.host.saves.fill(computerId, saves, { ...filling, signal: new AbortController().signal });
        return contentOf(elsewhere.dir, computerId);
      };
      await filled('cmp_stored');
      const { home } = computerLayout(hostLayout(elsewhere.dir), 'cmp_stored');
      expect(Number(readFileSync(join(home, 'changes'), 'utf8'))).toBe(stored.at(-1)?.changes);
      changes = changesOf(writer.computerId);
      await save(`hsv_after${cycle}`);
      expect(await filled('cmp_after')).toBe(contentOf(host.seenDir, writer.computerId));

      for (const computerId of there) {
        if (computerId !== writer.computerId && computerId !== swapped.computerId) await host.host.destroy(computerId);
      }
      swappedTo = [changesOf(swapped.computerId)];
      writer.generation++;
      await host.host.start(writer);
    }
    await host[Symbol.asyncDispose]();
  });

  test('A computer that was removed before the loss of power does not leave its home behind', async () => {
    await up();
    const removed = computerSpec();
    await host.host.start(removed);
    await runOn(host.host.client(removed.computerId), 'echo x > file; sync -f .');
    await host.host.destroy(removed.computerId);
    // The file system of the host's folder does so by itself every few seconds, and sooner than that of the homes.
    execFileSync('sync', ['-f', host.seenDir]);
    await disk.cut(host.pid);
    await up();
    await host.host.sweep();
    expect(readdirSync(hostLayout(host.seenDir).homes)).not.toContain(removed.computerId);
    await host[Symbol.asyncDispose]();
  });

  async function* chunksOf(file: string): AsyncGenerator<Buffer> {
    yield readFileSync(file);
  }
}
