import { createHash } from 'node:crypto';
import { readdirSync, readlinkSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import type { DriveBackend, DriveEntry, DriveWrite } from '../../../integrations/computers/drives/backend.ts';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { ifThere } from '../../../integrations/computers/system/ifThere.ts';
import { drivePrograms, missingDrive } from '../../builders/driveInComputers.ts';
import { buildHost, computerSpec, runOn, startComputer } from '../../builders/host.ts';
import { driveDaemonProgram } from '../../support/computerPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

// However a computer ends, nothing of it stays on its host: no way out, and no drive that keeps its volume in use.

const full = inFull('computers');

if (missingDrive !== undefined) {
  test(`It is not tested on this machine: ${missingDrive}`, () => expect(missingDrive).not.toBe(''));
} else buildTests();

/** The drive of a space that takes files, and has no folders. */
function takingBackend(written: Map<string, string>): DriveBackend {
  const folder = { parentId: '', kind: 'folder', name: '', size: 0, sha256: null, executable: false } as const;
  const root: DriveEntry = { ...folder, id: 'itm_root', version: 1, modifiedAtMs: 0, revision: 1 };
  const items = new Map<string, DriveEntry>();
  const rights = { epoch: 'one', access: 'write', freeBytes: null } as const;
  const noSuch = () => Promise.reject(new DomainError('forbidden', 'NOT_HERE', 'The test does not ask for this.'));
  let revision = 1;
  const put = (item: Omit<DriveEntry, 'revision'>) => {
    revision += 1;
    items.set(item.id, { ...item, revision });
    return { item: { ...item, revision }, conflict: false };
  };
  const writeOne = (
    computerId: string,
    { name, parentId, known, modifiedAtMs, executable }: DriveWrite,
    content: string,
  ) => {
    written.set(`${computerId}/${name}`, content);
    const at = { id: known?.itemId ?? `itm_${revision}`, version: (known?.version ?? 0) + 1 };
    const sha256 = createHash('sha256').update(content).digest('hex');
    return put({ ...at, parentId, kind: 'file', name, size: content.length, sha256, modifiedAtMs, executable });
  };
  return {
    root: async () => ({ item: root, revision, maxFileBytes: 1e9, ...rights }),
    children: async () => ({ items: [...items.values()], next: null, revision }),
    content: noSuch,
    write: async (computerId, write, bytes) => writeOne(computerId, write, await text(bytes)),
    writeSmall: async (computerId, files) =>
      files.map(({ write, bytes }) => writeOne(computerId, write, bytes.toString())),
    make: noSuch,
    move: noSuch,
    trash: noSuch,
    async attributes(_computerId, { itemId, ...changed }) {
      return put({ ...(items.get(itemId) ?? root), ...changed });
    },
    async changes(_computerId, { after }, waitMs, signal) {
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
      return { revision: after, reset: false, items: [], ...rights };
    },
  };
}

async function build() {
  const written = new Map<string, string>();
  const waysOut = new Set<string>();
  const refused = new Set<string>();
  const built = await buildHost({
    drivers: ['bubblewrap'],
    deadlines: { watchMs: 20 },
    egress: {
      async open({ computerId }) {
        waysOut.add(computerId);
        if (refused.has(computerId)) throw new Error('It has no way out.');
      },
      async close(computerId) {
        waysOut.delete(computerId);
      },
    },
    drive: { program: await driveDaemonProgram(), cacheBytes: 1e6, backend: takingBackend(written) },
  });
  const { host, dir } = built;
  return {
    ...built,
    written,
    /** Computers whose starts fail late. */
    refused,
    /** Starts a computer in whose drive a program has a file open. */
    async startWriting(changes: Parameters<typeof computerSpec>[0] = {}) {
      const started = await startComputer(host, { drive: { name: 'test' }, ...changes });
      const { client } = started;
      await client.startProcess({
        processId: 'prc_writes',
        command: 'echo late > drive/open; exec sleep 600 3>> drive/open',
      });
      await runOn(client, 'until grep -q late drive/open; do sleep 0.05; done; mkdir drive/node_modules');
      return started;
    },
    /** What is there of a computer beside its files. */
    leftOf: (computerId: string) => [
      ...(waysOut.has(computerId) ? ['its way out'] : []),
      ...openFiles(dir).filter((path) => path.includes(`/${computerId}/`)),
      ...readdirSync(hostLayout(dir).drives).filter((name) => name === computerId),
    ],
    recordOf: (computerId: string) => readRecord(hostLayout(dir), computerId),
    homeOf: (computerId: string) => computerLayout(hostLayout(dir), computerId).home,
  };
}

/** What the programs for drives of a folder have open. */
function openFiles(dir: string): string[] {
  return drivePrograms(dir).flatMap((pid) =>
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => ifThere(() => readlinkSync(`/proc/${pid}/fd/${name}`)) ?? []),
  );
}

function buildTests(): void {
  const ways: Record<string, (host: Host, computerId: string, holder: number) => Promise<unknown>> = {
    'is stopped': (host, computerId) => host.stop(computerId),
    'is deleted while it runs': (host, computerId) => host.destroy(computerId),
    'is deleted while it stands still': async (host, computerId) => {
      await host.pause(computerId);
      await host.destroy(computerId);
    },
    'ends by itself': async (_host, _computerId, holder) => {
      process.kill(holder, 'SIGKILL');
    },
  };
  for (const [way, end] of Object.entries(ways)) {
    test(`A computer that ${way} has its last files in the drive, and nothing open`, async () => {
      await using built = await build();
      const { host, written } = built;
      const { computerId } = await built.startWriting();
      expect(built.leftOf(computerId)).toEqual(
        expect.arrayContaining(['its way out', expect.stringContaining(built.homeOf(computerId)), computerId]),
      );
      await end(host, computerId, built.recordOf(computerId)?.run?.holder?.pid ?? 0);
      await waitFor('its end', () => built.recordOf(computerId)?.run?.phase !== 'running');
      expect(built.leftOf(computerId)).toEqual([]);
      await waitFor('its file', () => written.get(`${computerId}/open`) === 'late\n');
    });
  }

  test('A start that fails leaves nothing open', async () => {
    await using built = await build();
    const { computerId } = await built.startWriting();
    await built.host.stop(computerId);
    built.refused.add(computerId);
    const spec = computerSpec({ computerId, generation: 2, drive: { name: 'test' } });
    await expect(built.host.start(spec)).rejects.toMatchObject({ code: 'START_FAILED' });
    expect(built.leftOf(computerId)).toEqual([]);
  });

  full.it('What the program for drives keeps of a deleted computer while it hangs, it lets go afterwards', async () => {
    await using built = await build();
    const { computerId } = await built.startWriting();
    await built.startWriting(); // the program goes on for this one
    const [pid = 0] = drivePrograms(built.dir);
    process.kill(pid, 'SIGSTOP');
    await built.host.destroy(computerId);
    expect(built.leftOf(computerId)).not.toEqual([]);
    process.kill(pid, 'SIGCONT');
    await waitFor('its drive to be gone', () => built.leftOf(computerId).length === 0);
  });
}
