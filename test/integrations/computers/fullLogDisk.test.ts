import { existsSync } from 'node:fs';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { ProcessStore } from '../../../integrations/computers/processes/processStore.ts';
import { type Exit, type Gap, isOutput, noteOf } from '../../../integrations/computers/processes/records.ts';
import { storedOutput } from '../../../integrations/computers/processes/storedLog.ts';
import type { ProcessInfo } from '../../../integrations/computers/types.ts';
import { runOn, startComputer } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { mountSmallDisk, noSmallDisk } from '../../support/smallDisk.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

/** The logs of processes while the disk of their host is full. */
describe('a full disk of a host', () => {
  if (noSmallDisk !== undefined) {
    process.stderr.write(`\nNOT RUN: logs on a full disk: ${noSmallDisk}\n`);
    it(`is not tested on this machine: ${noSmallDisk}`, () => expect(noSmallDisk).not.toBe(''));
    return;
  }
  const exited = { state: 'exited', exitCode: 7, signal: null, killedBy: null } as const;
  const text = (letter: string, length: number) => [
    { kind: 'stdout' as const, payload: Buffer.from(letter.repeat(length)) },
  ];
  const storeOf = (folder: string) => new ProcessStore(`${folder}/processes`, { maxLogBytes: 4 * 1_048_576 });
  const begin = async (store: ProcessStore, processId: string) => {
    const { process } = await store.take({ processId, command: ['true'] }, '/home/user');
    if (process === undefined) throw new Error('The process is not new.');
    return process;
  };

  /** Reads a log into the form `a*10 gap*300000 b*5 exited`. */
  async function told(store: ProcessStore, processId: string, after = 0): Promise<string> {
    const parts: { what: string; length: number }[] = [];
    for await (const record of storedOutput(store, processId, { after })) {
      if (record.kind === 'exit') parts.push({ what: noteOf<Exit>(record).state, length: 0 });
      else if (record.kind === 'gap') parts.push({ what: 'gap', length: noteOf<Gap>(record).droppedBytes });
      else if (isOutput(record.kind)) {
        const what = String.fromCharCode(record.payload[0] ?? 0);
        const last = parts.at(-1);
        if (last?.what === what) last.length += record.payload.length;
        else parts.push({ what, length: record.payload.length });
      }
    }
    return parts.map(({ what, length }) => (length === 0 ? what : `${what}*${length}`)).join(' ');
  }

  it('leaves a gap in a log, which continues afterwards and has the end of the process', async () => {
    using disk = mountSmallDisk(16);
    const store = storeOf(disk.folder);
    const live = await begin(store, 'prc_one');
    await live.append(text('a', 100_000));
    disk.fill();
    for (let count = 0; count < 5; count++) await live.append(text('x', 100_000));
    // Readers see the existing output. The gap is reported together with the output after it.
    expect(await told(store, 'prc_one')).toMatch(/^a\*100000$/);
    disk.clear();
    await live.append(text('b', 50));
    await live.end(exited);
    const whole = 'a*100000 gap*500000 b*50 exited';
    expect(await told(store, 'prc_one')).toBe(whole);
    const info: Partial<ProcessInfo> = { ...exited, outputBytes: 600_050, droppedBytes: 500_000 };
    expect(await store.info('prc_one')).toMatchObject(info);
    // The same from disk, and from any position.
    const later = storeOf(disk.folder);
    expect(await later.info('prc_one')).toMatchObject(info);
    expect(await told(later, 'prc_one')).toBe(whole);
    expect(await told(later, 'prc_one', 99_990)).toBe('a*10 gap*500000 b*50 exited');
    expect(await told(later, 'prc_one', 350_000)).toBe('gap*250000 b*50 exited');
    expect(await told(later, 'prc_one', 600_000)).toBe('b*50 exited');
    expect(await told(later, 'prc_one', 600_050)).toBe('exited');
    await expect(told(later, 'prc_one', 600_051)).rejects.toMatchObject({ code: 'POSITION_UNKNOWN' });
  });

  it('does not lose the end of a process, which is written as soon as there is room', async () => {
    using disk = mountSmallDisk(16);
    const store = storeOf(disk.folder);
    const live = await begin(store, 'prc_ends');
    await live.append(text('a', 10));
    disk.fill();
    await live.append(text('x', 100_000));
    await live.end(exited);
    const info: Partial<ProcessInfo> = { ...exited, outputBytes: 100_010, droppedBytes: 100_000 };
    expect(await store.info('prc_ends')).toMatchObject(info);
    expect(await told(store, 'prc_ends')).toBe('a*10 gap*100000 exited');
    expect(await told(store, 'prc_ends', 100_010)).toBe('exited');
    await expect(begin(store, 'prc_new')).rejects.toMatchObject({ code: 'ENOSPC' });
    disk.clear();
    await waitFor('the end to be on disk', async () => (await storeOf(disk.folder).info('prc_ends')).exitCode === 7);
    const later = storeOf(disk.folder);
    expect(await later.info('prc_ends')).toMatchObject(info);
    expect(await told(later, 'prc_ends')).toBe('a*10 gap*100000 exited');
    await (await begin(store, 'prc_new')).end(exited);
    await store.remove('prc_ends');
    await expect(store.info('prc_ends')).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
  });

  const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: computers on a full disk: ${missing}\n`);
    return;
  }

  it('ends no process of a computer, and the ends of processes are reported', async () => {
    using disk = mountSmallDisk(320);
    const dir = `${disk.folder}/computers`;
    // The homes are on the same disk, without an image, which would fail as a whole.
    await using remote = await startHostProcess({ ...options, dir, without: ['image'], deadlines: { watchMs: 20 } });
    const { spec, computerId, client } = await startComputer(remote.host);
    const other = await startComputer(remote.host);
    await client.startProcess({
      processId: 'prc_talks',
      input: true,
      command: 'echo before; read one; head -c 3000000 /dev/zero; echo done; read two; echo after; exit 7',
    });
    await client.startProcess({ processId: 'prc_waits', input: true, command: 'read one; exit 9' });
    const say = (processId: string, eof = false) => client.sendInput(processId, { bytes: Buffer.from('x\n'), eof });
    disk.fill();
    await say('prc_talks');
    await say('prc_waits', true);
    await waitFor('the end on a full disk', async () => (await client.process('prc_waits')).state === 'exited');
    expect(await client.process('prc_waits')).toMatchObject({ exitCode: 9 });
    // The holder has no room for its error message either.
    await expect(runOn(client, 'true')).rejects.toMatchObject({ code: 'DISK_FULL' });
    expect(await client.process('prc_talks')).toMatchObject({ state: 'running' });
    await remote.host.stop(other.computerId).catch(() => undefined);
    disk.clear();
    await say('prc_talks', true);
    await waitFor('the process to end', async () => (await client.process('prc_talks')).state !== 'running');
    expect(await client.process('prc_talks')).toMatchObject({ state: 'exited', exitCode: 7 });
    let text = '';
    let gap = 0;
    for await (const record of client.output('prc_talks', {})) {
      if (record.kind === 'gap') gap += noteOf<Gap>(record).droppedBytes;
      if (record.kind === 'stdout') text += Buffer.from(record.payload).toString().replaceAll('\0', '');
    }
    expect(gap).toBeGreaterThan(1_000_000);
    expect(text).toMatch(/^before\n(done\n)?after\n$/);
    expect((await runOn(client, 'echo goes on')).stdout).toBe('goes on\n');
    await remote.host.start(spec);
    expect(remote.ended.filter((ended) => ended.computerId === computerId)).toEqual([]);
    await expect(remote.host.inspect(computerId)).resolves.toMatchObject({ state: 'running' });
  });

  it('does not prevent the report of why a computer ended', async () => {
    using disk = mountSmallDisk(320);
    const dir = `${disk.folder}/computers`;
    await using remote = await startHostProcess({ ...options, dir, without: ['image'], deadlines: { watchMs: 20 } });
    const { computerId } = await startComputer(remote.host);
    const record = readRecord(hostLayout(dir), computerId);
    disk.fill();
    process.kill(record?.run?.sandbox?.init.pid ?? 0, 'SIGKILL');
    await waitFor('the end file', () => existsSync(computerLayout(hostLayout(dir), computerId).end));
    disk.clear();
    await waitFor('the report of the end', () => remote.ended.length > 0);
    expect(remote.ended[0]?.end.reason).toContain('sandbox has ended');
  });
});
