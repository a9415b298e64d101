import { getPriority } from 'node:os';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { readRecord, writeRecord } from '../../../integrations/computers/host/records.ts';
import { buildHost, computerSpec, runOn, startComputer } from '../../builders/host.ts';
import { allKinds, contentOf, filling, readSave, saveHome, savesIn } from '../../builders/saves.ts';
import { pidsWith } from '../../support/processes.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;
const { signal } = new AbortController();

describe('saves of a home with snapshots', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: saves of homes: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('are what has changed, and make the same home on another host, which goes on with the chain', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    await using three = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, allKinds);
    const first = await saveHome(one.host, computerId, 'hsv_1');
    expect(first.bytes.length).toBeGreaterThan(3_000_000);
    expect(await one.host.saves.take(computerId, 'hsv_1')).toMatchObject({
      format: 'btrfs',
      uid: readRecord(hostLayout(one.dir), computerId)?.uid,
      homeBytes: (await one.host.metrics(computerId)).diskBytes,
    });
    await runOn(client, 'chmod 755 a/b; mv big a/b/bigger; rm hard; echo two > two; chmod 600 two');
    // Reading again gives the same bytes, whatever happens in the home.
    expect((await readSave(one.host, computerId, 'hsv_1')).equals(first.bytes)).toBe(true);
    const second = await saveHome(one.host, computerId, 'hsv_2', 'hsv_1');
    expect(second.bytes.length).toBeLessThan(5_000);
    await two.host.saves.fill(computerId, [first, second], filling);
    expect(contentOf(two.dir, computerId)).toBe(contentOf(one.dir, computerId));

    await two.host.start(computerSpec({ computerId, generation: 2 }));
    await runOn(two.host.client(computerId), 'cat two a/link; echo three > a/three; rm two');
    await two.host.saves.keepOnly(computerId, ['hsv_2']);
    expect(two.host.saves.kept(computerId)).toEqual(['hsv_2']);
    const third = await saveHome(two.host, computerId, 'hsv_3', 'hsv_2');
    await three.host.saves.fill(computerId, [first, second, third], filling);
    expect(contentOf(three.dir, computerId)).toBe(contentOf(two.dir, computerId));
    await three.host.start(computerSpec({ computerId, generation: 3 }));
    const owned = await runOn(three.host.client(computerId), 'cat a/three; find . ! -user user');
    expect(owned).toMatchObject({ stdout: 'three\n', exitCode: 0 });
    // The first host can take the home back, from what it still has.
    await one.host.stop(computerId);
    await one.host.saves.fill(computerId, [first, second, third], { ...filling, replaces: true });
    expect(contentOf(one.dir, computerId)).toBe(contentOf(two.dir, computerId));
  });

  it('are needed for a home with any change since the last save, and only for such a home', async () => {
    await using one = await buildHost(options);
    const { host } = one;
    const { client, computerId } = await startComputer(host);
    const quiet = await startComputer(host);
    await host.saves.take(quiet.computerId, 'hsv_quiet');
    await runOn(client, 'echo one > one; head -c 100000 /dev/zero > file; mkdir folder');
    const python = (code: string) => `python3 -c 'import mmap, os\nf = os.open("file", os.O_RDWR)\n${code}'`;
    const changes = [
      'true',
      'echo two >> one',
      'mv one two',
      'chmod 700 two',
      'touch two',
      'ln two three',
      'rm three',
      'rmdir folder',
      python('os.write(f, b"y"); os.fsync(f)'),
      python('m = mmap.mmap(f, 4096); m[0:1] = b"z"; os._exit(0)'),
      python('os.setxattr("file", "user.x", b"1")'),
      'truncate -s 10 file',
    ];
    for (const [n, change] of changes.entries()) {
      expect((await runOn(client, change)).exitCode).toBe(0);
      expect([change, await host.saves.changed()]).toEqual([change, [computerId]]);
      await host.saves.take(computerId, `hsv_${n}`);
      await runOn(client, 'cat two; ls -lR; sync; touch none/none');
      expect([change, await host.saves.changed()]).toEqual([change, []]);
    }
    await host.saves.keepOnly(computerId, []);
    expect(await host.saves.changed()).toEqual([computerId]);
  });

  it('are not needed for a filled or replaced home before its first change', async () => {
    await using one = await buildHost(options);
    await using two = await buildHost(options);
    const other = await startComputer(one.host);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one');
    const first = await saveHome(one.host, computerId, 'hsv_1');
    // Now both uids are free, and the second host would take the lower one for a new home.
    for (const each of [other.computerId, computerId]) await one.host.destroy(each);
    await two.host.saves.fill(computerId, [first], filling);
    expect(readRecord(hostLayout(two.dir), computerId)?.uid).toBe(first.uid);
    expect(await two.host.saves.changed()).toEqual([]);
    await two.host.start(computerSpec({ computerId, generation: 2 }));
    const there = two.host.client(computerId);
    expect(await two.host.saves.changed()).toEqual([]);
    await runOn(there, 'echo two > two');
    await two.host.saves.take(computerId, 'hsv_2');
    await two.host.stop(computerId);
    const refused = { code: 'SAVE_ABSENT' };
    await expect(saveHome(two.host, computerId, 'hsv_3', 'hsv_none')).rejects.toMatchObject(refused);
    await two.host.saves.fill(computerId, [first], { ...filling, replaces: true });
    expect(await two.host.saves.changed()).toEqual([]);
    expect(contentOf(two.dir, computerId)).not.toContain('two');
  });

  it('hold up nothing else, and end when their computer is destroyed', async () => {
    await using one = await buildHost(options);
    const { host, dir } = one;
    const { client, computerId, spec } = await startComputer(host);
    await runOn(client, 'head -c 20000000 /dev/urandom > big');
    await host.saves.take(computerId, 'hsv_1');
    const reading = host.saves.read(computerId, 'hsv_1', null, signal)[Symbol.asyncIterator]();
    await reading.next();
    const next = host.saves.take(computerId, 'hsv_2').catch((error: { code: string }) => error.code);
    expect((await runOn(client, 'echo used')).stdout).toBe('used\n');
    await host.stop(computerId);
    await host.start({ ...spec, generation: 2 });
    expect(host.saves.kept(computerId)).toEqual(['hsv_1']);
    const sending = () => pidsWith(hostLayout(dir).snapshots, 'btrfs');
    expect(sending().map((pid) => getPriority(pid))).toEqual([19]);
    // The reader does not ask for more, and still ends.
    await host.destroy(computerId);
    expect(sending()).toEqual([]);
    expect(await next).toBe('COMPUTER_ABSENT');
    const rest = async () => {
      while ((await reading.next()).done !== true);
    };
    await expect(rest()).rejects.toMatchObject({ code: 'COMPUTER_ABSENT' });
    expect(savesIn(dir)).toEqual([]);
  });

  it('count neither against the limit of the home nor as its bytes', async () => {
    await using one = await buildHost(options);
    const { host } = one;
    const { client, computerId } = await startComputer(host);
    for (const n of [1, 2, 3]) {
      const written = await runOn(client, 'rm -f big; sync; head -c 90000000 /dev/urandom > big; sync; stat -c %s big');
      expect(written).toMatchObject({ stdout: '90000000\n', stderr: '' });
      const { homeBytes } = await host.saves.take(computerId, `hsv_${n}`);
      expect(Math.abs(homeBytes - 90_000_000)).toBeLessThan(2_000_000);
      expect((await host.metrics(computerId)).diskBytes).toBe(homeBytes);
    }
  });

  it('of which far more bytes come than the home may have are SAVE_TOO_LARGE', async () => {
    await using one = await buildHost(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'head -c 3000000 /dev/urandom > big');
    const record = readRecord(hostLayout(one.dir), computerId);
    if (record === undefined) throw new Error('no record');
    writeRecord(hostLayout(one.dir), { ...record, limits: { ...record.limits, diskMiB: -511 } }); // for a bound of 2 MiB
    await expect(saveHome(one.host, computerId, 'hsv_1')).rejects.toMatchObject({ code: 'SAVE_TOO_LARGE' });
    await one.host.saves.keepOnly(computerId, []); // the program has ended
  });
});
