import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import fc from 'fast-check';
import type { LiveProcess } from '../../../integrations/computers/processes/liveProcess.ts';
import { type ReadableLog, readLog } from '../../../integrations/computers/processes/logReader.ts';
import { diskBytesOfStore } from '../../../integrations/computers/processes/logRoom.ts';
import { LogWriter } from '../../../integrations/computers/processes/logWriter.ts';
import { LogPace } from '../../../integrations/computers/processes/pace.ts';
import { ProcessStore } from '../../../integrations/computers/processes/processStore.ts';
import { noteRecord, positionAfter, RecordDecoder } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../../integrations/computers/types.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { sizeOf } from '../../support/size.ts';

const root = temporaryFolder();
let count = 0;
const newFolder = () => {
  const folder = `${root}/${count++}`;
  mkdirSync(folder);
  return folder;
};
const exit = { state: 'exited', exitCode: 0, signal: null, killedBy: null } as const;

function logOf(writer: LogWriter): ReadableLog {
  return {
    segments: () => writer.segments,
    isOver: () => writer.isClosed,
    changed: () => writer.changed(),
    end: () => writer.end,
    exit: () => ({ ...exit, state: 'lost' }),
  };
}

async function recordsOf(log: ReadableLog, after = 0, follow = false): Promise<OutputRecord[]> {
  const decoder = new RecordDecoder();
  const records: OutputRecord[] = [];
  for await (const bytes of readLog(log, { after, follow })) records.push(...decoder.push(bytes));
  return records;
}

const textOf = (records: OutputRecord[]) =>
  records.map(({ kind, payload }) => (kind === 'stdout' ? Buffer.from(payload).toString('latin1') : '')).join('');

const alphabet = Buffer.from('abcdefghijklmnopqrstuvwxyz'.repeat(4_000));
const letters = (length: number, from = 0) => alphabet.subarray(from % 26, (from % 26) + length);

it('a log can be read from any position', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.nat({ max: 40 }), { maxLength: 4 }), { maxLength: 6 }),
      fc.nat({ max: 500 }),
      async (batches, at) => {
        const writer = new LogWriter(newFolder(), { maxLogBytes: 1_048_576 });
        let written = '';
        for (const batch of batches) {
          await writer.append(
            batch.map((length) => {
              const payload = letters(length, written.length);
              written += payload;
              return { kind: 'stdout' as const, payload };
            }),
          );
        }
        await writer.append([noteRecord('exit', 0, exit)]);
        const after = written.length === 0 ? 0 : at % (written.length + 1);
        const records = await recordsOf(logOf(writer), after);
        expect(textOf(records)).toBe(written.slice(after));
        expect(records.at(-1)).toMatchObject({ kind: 'exit', position: written.length });
        await expect(recordsOf(logOf(writer), written.length + 1)).rejects.toMatchObject({ code: 'POSITION_UNKNOWN' });
        await writer.close();
      },
    ),
    { numRuns: 50 },
  );
});

it('a log takes hardly more room than its output, also with small writes to both streams in turn', async () => {
  const folder = newFolder();
  const writer = new LogWriter(folder, { maxLogBytes: 4 * 1_048_576 });
  const each = 50_000;
  for (let batch = 0; batch < 10; batch++) {
    await writer.append(
      Array.from({ length: each / 5 }, (_, at) => ({
        kind: at % 2 === 0 ? ('stdout' as const) : ('stderr' as const),
        payload: letters(1, batch * (each / 10) + Math.floor(at / 2)),
      })),
    );
  }
  const onDisk = readdirSync(folder).reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0);
  expect(onDisk).toBeLessThan(2 * each * 1.01);
  const records = await recordsOf(logOf(writer));
  for (const kind of ['stdout', 'stderr']) {
    const own = records.filter((record) => record.kind === kind).map(({ payload }) => Buffer.from(payload));
    expect(Buffer.concat(own).equals(letters(each))).toBe(true);
  }
  await writer.close();
});

it('a log keeps the order of a few writes to both streams', async () => {
  const writer = new LogWriter(newFolder(), { maxLogBytes: 1_048_576 });
  const pieces = ['stdout one', 'stderr two', 'stdout three', 'stderr four'].map((text) => ({
    kind: text.split(' ')[0] as 'stdout' | 'stderr',
    payload: Buffer.from(text),
  }));
  await writer.append(pieces);
  expect((await recordsOf(logOf(writer))).map(({ payload }) => Buffer.from(payload).toString())).toEqual(
    pieces.map(({ payload }) => payload.toString()),
  );
  await writer.close();
});

it('a read joins small records, from any position', async () => {
  const writer = new LogWriter(newFolder(), { maxLogBytes: 1_048_576 });
  const length = 2_000;
  for (let at = 0; at < length; at++) {
    await writer.append([{ kind: 'pty', payload: letters(1, at) }]);
    if (at === length / 2) await writer.append([noteRecord('resize', 0, { cols: 80, rows: 24 })]);
  }
  for (const after of [0, 1, 999, length / 2 + 1, length - 1]) {
    const records = await recordsOf(logOf(writer), after);
    expect(records.length).toBeLessThanOrEqual(3);
    let position = after;
    for (const record of records) {
      expect(record.position).toBe(position);
      position = positionAfter(record);
    }
    const text = Buffer.concat(records.filter(({ kind }) => kind === 'pty').map(({ payload }) => payload));
    expect(text.equals(letters(length).subarray(after))).toBe(true);
  }
  await writer.close();
});

describe('the pace of a log', () => {
  it('lets a burst pass, and then limits the bytes in a second', () => {
    let now = 0;
    const pace = new LogPace(() => now);
    const mebibyte = 1_048_576;
    for (let written = 0; written < 64; written++) expect(pace.waitMs(mebibyte)).toBe(0);
    expect(pace.waitMs(mebibyte)).toBeCloseTo(1_000 / 16);
    expect(pace.waitMs(mebibyte)).toBeCloseTo(2_000 / 16);
    now += 125;
    expect(pace.waitMs(8 * mebibyte)).toBeCloseTo(500);
  });

  it('delays many small writes, so that they are joined, but not a few', () => {
    let now = 0;
    const pace = new LogPace(() => now);
    let waits = 0;
    const write = () => {
      const waitMs = pace.waitMs(10);
      now += waitMs;
      if (waitMs > 0) waits++;
    };
    for (let count = 0; count < 250; count++) write();
    expect(waits).toBe(0);
    for (let count = 0; count < 1_000; count++) write();
    expect(now).toBeGreaterThan(3_900);
    expect(now).toBeLessThan(4_100);
  });

  it('delays the process, but not its readers or its end', async () => {
    const writer = new LogWriter(newFolder(), { maxLogBytes: 1_048_576, pace: { waitMs: () => 200 } });
    const told: string[] = [];
    const changed = writer.changed().then(() => told.push('readers'));
    const written = writer.append([{ kind: 'stdout', payload: letters(10) }]).then(() => told.push('process'));
    const ended = writer.append([noteRecord('exit', 0, exit)]).then(() => told.push('end'));
    await Promise.all([changed, written, ended]);
    expect(told).toEqual(['readers', 'end', 'process']);
    await writer.close();
  });
});

it('a long log keeps its beginning and its end in bounded room, and a gap says what is missing', async () => {
  const folder = newFolder();
  const maxLogBytes = 2 * 1_048_576;
  const writer = new LogWriter(folder, { maxLogBytes });
  const total = sizeOf('LOG_MB', 40) * 1_048_576;
  const chunk = 50_000;
  for (let at = 0; at < total; at += chunk) {
    await writer.append([{ kind: 'stdout', payload: letters(Math.min(chunk, total - at), at) }]);
  }
  const onDisk = readdirSync(folder).reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0);
  expect(onDisk).toBeLessThanOrEqual(maxLogBytes);
  expect(onDisk).toBeGreaterThan(maxLogBytes * 0.8);
  const records = await recordsOf(logOf(writer));
  const gaps = records.filter(({ kind }) => kind === 'gap');
  expect(gaps).toHaveLength(1);
  const gap = gaps[0] as OutputRecord;
  expect(gap.position).toBeGreaterThan(maxLogBytes / 8);
  expect(writer).toMatchObject({ position: total, droppedBytes: positionAfter(gap) - gap.position });
  let position = 0;
  for (const record of records) {
    expect(record.position).toBe(position);
    if (record.kind === 'stdout') expect(record.payload[0]).toBe(97 + (position % 26));
    position = positionAfter(record);
  }
  expect(position).toBe(total);
  // A read may begin within the gap.
  const [first, second] = await recordsOf(logOf(writer), gap.position + 1_000);
  expect(first).toMatchObject({ kind: 'gap', position: gap.position + 1_000 });
  expect(second?.position).toBe(positionAfter(gap));
  await writer.close();
});

it('a reader that is slower than the process gets gaps and the end', async () => {
  const writer = new LogWriter(newFolder(), { maxLogBytes: 1_048_576 });
  const decoder = new RecordDecoder();
  let position = 0;
  const write = async (times: number) => {
    for (let at = 0; at < times; at++)
      await writer.append([{ kind: 'stdout', payload: letters(60_000, writer.position) }]);
  };
  await write(1);
  for await (const bytes of readLog(logOf(writer), { after: 0, follow: true })) {
    for (const record of decoder.push(bytes)) {
      expect(record.position).toBe(position);
      if (record.kind === 'stdout') expect(record.payload[0]).toBe(97 + (position % 26));
      position = positionAfter(record);
    }
    // While the reader handles a piece, most of the following output is dropped.
    if (writer.position < 20_000_000) await write(30);
    else if (!writer.isClosed) {
      await writer.append([noteRecord('exit', 0, exit)]);
      await writer.close();
    }
  }
  expect(position).toBe(writer.position);
});

it('followers get new output as soon as it is on disk', async () => {
  const folder = newFolder();
  const writer = new LogWriter(folder, { maxLogBytes: 1_048_576 });
  const decoder = new RecordDecoder();
  const seen: string[] = [];
  const reading = (async () => {
    for await (const bytes of readLog(logOf(writer), { after: 0, follow: true })) {
      const file = readFileSync(`${folder}/${readdirSync(folder)[0]}`);
      for (const { payload } of decoder.push(bytes)) {
        const text = Buffer.from(payload).toString();
        for (const word of ['one', 'two', 'three']) if (text.includes(word)) expect(file.includes(word)).toBe(true);
        seen.push(text);
      }
    }
  })();
  for (const text of ['one', 'two', 'three']) await writer.append([{ kind: 'stderr', payload: Buffer.from(text) }]);
  await writer.append([noteRecord('exit', 0, exit)]);
  await reading;
  expect(seen.join('')).toContain('onetwothree');
  await writer.close();
});

describe('a store', () => {
  const open = (folder: string, more = {}) => new ProcessStore(folder, { maxLogBytes: 1_048_576, ...more });
  const take = (store: ProcessStore, processId: string, command = 'true') =>
    store.take({ processId, command }, '/home/user');

  it('reports the running processes of its last holder as lost, also with a truncated log', async () => {
    const folder = newFolder();
    const { process } = await take(open(folder), 'p');
    await process?.append([{ kind: 'stdout', payload: Buffer.from('kept') }]);
    await process?.append([{ kind: 'stderr', payload: Buffer.from('cut') }]);
    const [segment] = readdirSync(`${folder}/p`).filter((name) => name.endsWith('.log'));
    const path = `${folder}/p/${segment}`;
    const whole = statSync(path).size;
    for (let size = whole; size >= 0; size--) {
      truncateSync(path, size);
      const store = open(folder);
      const records = await recordsOf(await store.log('p'), 0, true);
      const expected = size === whole ? 'keptcut' : size >= whole - 16 ? 'kept' : '';
      expect(
        records.map(({ kind, payload }) => (kind === 'exit' ? '' : Buffer.from(payload).toString())).join(''),
      ).toBe(expected);
      expect(await store.info('p')).toMatchObject({ state: 'lost', outputBytes: expected.length, exitCode: null });
      expect(records.at(-1)?.kind).toBe('exit');
    }
  });

  it('knows the end of a process if only the log or only the description has it', async () => {
    const folder = newFolder();
    const { process } = await take(open(folder), 'p');
    await process?.append([{ kind: 'stdout', payload: Buffer.from('all') }]);
    const before = readFileSync(`${folder}/p/meta.json`);
    await process?.end({ ...exit, exitCode: 4 });
    const after = readFileSync(`${folder}/p/meta.json`);
    writeFileSync(`${folder}/p/meta.json`, before);
    expect(await open(folder).info('p')).toMatchObject({ state: 'exited', exitCode: 4, outputBytes: 3 });
    writeFileSync(`${folder}/p/meta.json`, after);
    const [segment] = readdirSync(`${folder}/p`).filter((name) => name.endsWith('.log'));
    truncateSync(`${folder}/p/${segment}`, 16);
    const records = await recordsOf(await open(folder).log('p'), 0, true);
    expect(JSON.parse(String(Buffer.from(records.at(-1)?.payload ?? [])))).toMatchObject({
      state: 'exited',
      exitCode: 4,
    });
  });

  it('gives an id to one process, unless the holder was killed before it started the process', async () => {
    const folder = newFolder();
    const store = open(folder);
    const taken = await Promise.all([take(store, 'p'), take(store, 'p'), take(store, 'p')]);
    expect(taken.filter(({ process }) => process !== undefined)).toHaveLength(1);
    await expect(take(store, 'p', 'false')).rejects.toMatchObject({ code: 'PROCESS_ID_TAKEN' });
    await expect(take(open(folder), 'p', 'false')).rejects.toMatchObject({ code: 'PROCESS_ID_TAKEN' });
    expect(await take(open(folder), 'p')).toMatchObject({ process: undefined, info: { state: 'lost' } });
    mkdirSync(`${folder}/q`);
    appendFileSync(`${folder}/q/meta.json.new`, '{');
    expect((await take(open(folder), 'q')).process).toBeDefined();
    for (const id of ['', '.', '..', 'a/b', '-a', 'a'.repeat(101), 'a\n']) {
      await expect(take(store, id)).rejects.toMatchObject({ code: 'PROCESS_ID_INVALID' });
      await expect(store.info(id)).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    }
  });

  it('keeps all running processes, and a limited number of ended ones', async () => {
    const folder = newFolder();
    const store = open(folder, { maxKept: 2 });
    const { process: running } = await take(store, 'running');
    for (const id of ['a', 'b', 'c']) await (await take(store, id)).process?.end(exit);
    await store.prune();
    const kept = (await store.list()).map(({ processId }) => processId);
    expect(kept).toHaveLength(3);
    expect(kept).toContain('running');
    expect(existsSync(`${folder}/a`) && existsSync(`${folder}/b`)).toBe(false);
    await running?.end(exit);
    await open(folder, { maxKeptMs: 0 }).prune();
    expect(await store.list()).toEqual([]);
  });

  it('keeps the end of a run, although many other processes end after it', async () => {
    const folder = newFolder();
    const store = open(folder, { maxKept: 2 });
    for (const id of ['run_1', 'a', 'b', 'c', 'd']) await (await take(store, id)).process?.end(exit);
    await store.prune();
    const kept = async () => (await store.list()).map(({ processId }) => processId).sort();
    expect(await kept()).toEqual(['c', 'd', 'run_1']);
    for (const id of ['run_2', 'run_3']) await (await take(store, id)).process?.end(exit);
    await store.prune();
    expect(await kept()).toEqual(['c', 'd', 'run_2', 'run_3']);
  });

  it("does not follow links or wait for FIFOs of the computer's user", async () => {
    const folder = newFolder();
    const outside = newFolder();
    const store = open(folder);
    await (await take(store, 'own')).process?.end(exit);
    const { process } = await take(open(outside), 'secret');
    await process?.append([{ kind: 'stdout', payload: Buffer.from('of somebody else') }]);
    await process?.end(exit);
    symlinkSync(`${outside}/secret`, `${folder}/folder`);
    mkdirSync(`${folder}/meta`);
    symlinkSync(`${outside}/secret/meta.json`, `${folder}/meta/meta.json`);
    mkdirSync(`${folder}/fifo`);
    execFileSync('mkfifo', [`${folder}/fifo/meta.json`]);
    for (const id of ['folder', 'meta', 'fifo']) {
      await expect(store.info(id)).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    }
    expect((await store.list()).map(({ processId }) => processId)).toEqual(['own']);
    const [segment = ''] = readdirSync(`${outside}/secret`).filter((name) => name.endsWith('.log'));
    rmSync(`${folder}/own/${segment}`);
    symlinkSync(`${outside}/secret/${segment}`, `${folder}/own/${segment}`);
    expect((await recordsOf(await store.log('own'))).map(({ kind }) => kind)).toEqual(['exit']);
    rmSync(`${folder}/own/${segment}`);
    execFileSync('mkfifo', [`${folder}/own/${segment}`]);
    expect((await recordsOf(await store.log('own'))).map(({ kind }) => kind)).toEqual(['exit']);
  });

  describe('with limited room', () => {
    const maxDiskBytes = 2 * 1_048_576;
    const limited = (folder: string) => open(folder, { maxDiskBytes, maxProcesses: 4 });
    const write = async (process: LiveProcess | undefined, mebibytes: number) => {
      for (let at = 0; at < mebibytes * 20; at++) {
        await process?.append([{ kind: 'stdout', payload: letters(52_429, at) }]);
      }
    };

    it('removes the processes that ended first, by their size on disk', async () => {
      const folder = newFolder();
      const store = limited(folder);
      for (const id of ['a', 'b', 'c', 'd', 'e']) {
        const { process } = await take(store, id);
        // The size on disk counts, not the size of the output.
        writeFileSync(`${folder}/${id}/00000009-000000000000000.log`, Buffer.alloc(600_000));
        await process?.end(exit);
        await store.prune();
        expect(await diskBytesOfStore(folder)).toBeLessThanOrEqual(maxDiskBytes);
      }
      expect((await store.list()).map(({ processId }) => processId)).toEqual(['e', 'd', 'c']);
    });

    it('drops the middle of running logs, and keeps their beginning and end', async () => {
      const folder = newFolder();
      const store = limited(folder);
      const { process: old } = await take(store, 'old');
      await write(old, 1);
      await old?.end(exit);
      const running = await Promise.all(
        ['a', 'b', 'c', 'd'].map(async (id) => (await take(store, id)).process as LiveProcess),
      );
      await Promise.all(running.map((process) => write(process, 3)));
      expect(existsSync(`${folder}/old`)).toBe(false);
      expect(await diskBytesOfStore(folder)).toBeLessThanOrEqual(maxDiskBytes + 4 * 131_072);
      for (const process of running) {
        const records = await recordsOf(process.log);
        expect(records[0]).toMatchObject({ kind: 'stdout', position: 0 });
        expect(records.filter(({ kind }) => kind === 'gap')).toHaveLength(1);
        expect(positionAfter(records.at(-1) as OutputRecord)).toBe(process.info().outputBytes);
        const kept = process.info().outputBytes - process.info().droppedBytes;
        expect(kept).toBeGreaterThan(maxDiskBytes / 16);
        await process.end(exit);
      }
    });

    it('cleans up the logs of an earlier holder', async () => {
      const folder = newFolder();
      const before = open(folder);
      for (const id of ['a', 'b', 'c']) {
        const { process } = await take(before, id);
        await write(process, 1);
        await process?.end(exit);
      }
      mkdirSync(`${folder}/nothing`);
      await limited(folder).prune();
      expect(await diskBytesOfStore(folder)).toBeLessThanOrEqual(maxDiskBytes);
      expect(readdirSync(folder)).not.toContain('nothing');
    });
  });
});
