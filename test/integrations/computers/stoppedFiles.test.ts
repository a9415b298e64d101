import { rmSync } from 'node:fs';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord, writeRecord } from '../../../integrations/computers/host/records.ts';
import { buildHost, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const full = inFull('computers');

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

/** Access to the files and logs of a stopped computer, without waking it. */
describe.each(usable)('a host with $name', ({ options }) => {
  it('reads and writes the files of a stopped computer, and follows no link out of it', async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { spec, computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > file; ln -s /etc/shadow out; ln -s /proc/1/root/etc/shadow further', {
      processId: 'prc_said',
    });
    await host.stop(computerId);
    const files = await host.files(computerId);
    const again = await Promise.all(Array.from({ length: 5 }, () => host.files(computerId)));
    expect(again).toHaveLength(5);
    const { body } = await files.readFile('file');
    expect(Buffer.concat(await body.toArray()).toString()).toBe('kept\n');
    for (const name of ['out', 'further']) {
      await expect(files.readFile(name)).rejects.toMatchObject({ code: expect.stringMatching(/^FILE_/) });
    }
    await expect(files.process('prc_said')).resolves.toMatchObject({ state: 'exited' });
    await expect(files.startProcess({ processId: 'prc_no', command: 'true' })).rejects.toMatchObject({
      code: 'COMPUTER_NOT_RUNNING',
    });
    await expect(files.dialPort(8000)).rejects.toMatchObject({ code: 'COMPUTER_NOT_RUNNING' });
    await files.writeFile('more', Buffer.from('written while it slept'));
    await expect(host.inspect(computerId)).resolves.toEqual({ state: 'gone' });
    expect(await host.sweep()).toEqual([]);
    await host.start({ ...spec, generation: 2 });
    expect((await runOn(host.client(computerId), 'cat more')).stdout).toBe('written while it slept');
  });

  it('reads a computer that has a home, even if it has never run here', async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > file');
    await host.stop(computerId);
    // As after a restore: the home and the record are there, but no run and no folder for its sockets.
    const layout = hostLayout(built.dir);
    const record = readRecord(layout, computerId);
    if (record === undefined) throw new Error('The host has no record of the computer.');
    writeRecord(layout, { ...record, spaceId: 'spc_1', run: null });
    const paths = computerLayout(layout, computerId);
    rmSync(paths.run, { recursive: true });
    for (const files of [await host.files(computerId), await host.work(computerId)]) {
      expect(Buffer.concat(await (await files.readFile('file')).body.toArray()).toString()).toBe('kept\n');
    }
    expect(await (await host.files(computerId)).listProcesses()).toHaveLength(1);
  });

  it('refuses to delete, move or replace the home and mount points of a running and a stopped computer', async () => {
    await using built = await buildHost(options);
    const { host } = built;
    const { computerId, client } = await startComputer(host);
    await runOn(client, 'echo kept > file; mkdir folder');
    const refused = { code: 'FILE_ACCESS_DENIED' };
    for (const state of ['running', 'stopped']) {
      if (state === 'stopped') await host.stop(computerId);
      const files = state === 'stopped' ? await host.files(computerId) : client;
      for (const path of ['/home/user', '.', 'folder/..', '/proc/self/cwd/', '/home', '/tmp', '/']) {
        await expect(files.deleteFile(path, { recursive: true })).rejects.toMatchObject(refused);
        await expect(files.moveFile(path, '/tmp/moved', { replace: true })).rejects.toMatchObject(refused);
        await expect(files.moveFile('folder', path, { replace: true })).rejects.toMatchObject(refused);
      }
      await files.moveFile('file', '/tmp/moved');
      await files.moveFile('/tmp/moved', 'file');
      const { entries } = await files.listFiles('.');
      expect(entries.map(({ name }) => name)).toEqual(expect.arrayContaining(['file', 'folder']));
      expect(entries.filter(({ name }) => name.startsWith('.atrium-'))).toEqual([]);
      expect(Buffer.concat(await (await files.readFile('file')).body.toArray()).toString()).toBe('kept\n');
    }
  });

  full.it('limits the stopped computers that are read at once, in total and for each space', async () => {
    await using built = await buildHost({ ...options, files: { perHost: 3, perSpace: 2, waitMs: 300, restMs: 0 } });
    const { host } = built;
    const stopped = async (spaceId: string) => {
      const { computerId, client } = await startComputer(host, { spaceId });
      await runOn(client, 'head -c 20000000 /dev/zero > large');
      await host.stop(computerId);
      return computerId;
    };
    const [a1, a2, a3] = [await stopped('spc_a'), await stopped('spc_a'), await stopped('spc_a')];
    const [b1, b2] = [await stopped('spc_b'), await stopped('spc_b')];
    const copy = `${a3}copy`;
    await host.fork(a3, { computerId: copy, limits: usualLimits });
    /** Begins to read the file, and does not finish. */
    const read = async (id: string) => (await (await host.files(id)).readFile('large')).body;
    const list = async (id: string) => (await (await host.files(id)).listFiles('.')).entries.length;
    const readers = [await read(a1), await read(a2)];
    const refused = { code: 'FILES_BUSY', retryAfterSeconds: 5 };
    await expect(host.files(a3)).rejects.toMatchObject({ kind: 'rateLimited', ...refused });
    await expect(host.files(copy)).rejects.toMatchObject({ kind: 'rateLimited', ...refused });
    await expect(host.socket(a3)).rejects.toMatchObject({ kind: 'rateLimited', ...refused });
    expect(await list(a1)).toBe(1);
    readers.push(await read(b1));
    await expect(host.files(b2)).rejects.toMatchObject({ kind: 'unavailable', ...refused });
    // An idle sandbox makes room for its own space or another.
    readers[0]?.destroy();
    expect(await waitFor('a free slot', () => list(a3).catch(() => undefined))).toBe(1);
    expect(await waitFor('a free slot', () => list(b2).catch(() => undefined))).toBe(1);
    for (const reader of readers) reader.destroy();
    expect(
      await Promise.all(
        [a1, a2, a3, b1, b2, copy].map((id) => waitFor('a slot', () => list(id).catch(() => undefined))),
      ),
    ).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('answers COMPUTER_ABSENT for a computer that does not exist', async () => {
    await using built = await buildHost(options);
    await expect(built.host.files('cmp_none')).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
  });
});

if (usable.length === 0) {
  it('stopped files are not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
