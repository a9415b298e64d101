import { DocumentReaders, type ReaderOptions } from '../../../integrations/readers/documentReaders.ts';
import { buildPdf } from '../../builders/files.ts';
import { slowPage } from '../../builders/hostilePages.ts';
import { until } from '../../support/processes.ts';
import { processorMs, readerProcesses } from '../../support/readerProcesses.ts';

/**
 * The pool of reader processes: its queue, its limits, and its memory of costly documents. reading.test.ts tests the
 * contents.
 */
let readers: DocumentReaders;
const open = (options: ReaderOptions = {}) => {
  readers = new DocumentReaders(options);
  return readers;
};
afterEach(async () => {
  readers.close();
  await until(() => readerProcesses().length === 0);
});

/** No limit of time, so that a busy machine changes nothing. */
const endless = { processorMs: Infinity, timeMs: 2 ** 31 - 1 };
const page = (text: string) => Buffer.from(`<html><title>T</title><body><p>${text}</p>`);
const ofA = { spaceId: 'spc_a' };
const ofB = { spaceId: 'spc_b' };

/** Begins to read a document that takes for ever. `kill` ends its process. */
async function beginEndless() {
  await readers.read('page', page('first'), ofA);
  const [working] = readerProcesses() as [number];
  const before = processorMs(working);
  const reading = readers.read('page', slowPage, ofA);
  await until(() => processorMs(working) > before + 100);
  return { reading, kill: () => process.kill(working, 'SIGKILL') };
}

test('A process is reused only for the same space', async () => {
  open({ places: 1 });
  expect(await readers.read('page', page('one'), ofA)).toEqual({
    kind: 'read',
    value: { title: 'T', text: 'one', isCut: false },
  });
  const first = readerProcesses();
  await readers.read('page', page('two'), ofA);
  await readers.read('pdf', buildPdf(['three']), ofA);
  expect(readerProcesses()).toEqual(first);
  await readers.read('page', page('four'), ofB);
  await until(() => readerProcesses().length === 1);
  expect(readerProcesses()).not.toEqual(first);
});

test('a process is replaced after fifty documents', async () => {
  open();
  await readers.read('page', page('first'), ofA);
  const first = readerProcesses();
  for (let number = 0; number < 50; number++) await readers.read('page', page(`page ${number}`), ofA);
  expect(readerProcesses()).not.toEqual(first);
});

test('A document that takes too long is aborted without blocking the event loop, and is not tried again', async () => {
  const limits = { processorMs: 500 };
  open({ limits });
  let turns = 0;
  const timer = setInterval(() => turns++, 10);
  expect(await readers.read('page', slowPage, ofA)).toEqual({ kind: 'costly' });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
  await until(() => readerProcesses().length === 0);
  expect(await readers.read('page', slowPage, ofA)).toEqual({ kind: 'costly' });
  expect(await readers.read('page', slowPage, ofB)).toEqual({ kind: 'costly' });
  expect(readerProcesses()).toEqual([]);
  // A busy machine may take longer than this for the start of a parser.
  limits.processorMs = Infinity;
  expect(await readers.read('page', page('next'), ofA)).toMatchObject({ kind: 'read' });
});

test('a document is also aborted by a limit of wall-clock time', async () => {
  open({ limits: { timeMs: 300 } });
  expect(await readers.read('page', slowPage, ofA)).toEqual({ kind: 'costly' });
});

test('A document whose process is killed counts as costly, and a process that was killed while idle is replaced', async () => {
  open({ limits: endless });
  await readers.read('page', page('first'), ofA);
  const [idle] = readerProcesses();
  process.kill(idle as number, 'SIGKILL');
  // The end of the process has not been noticed yet.
  expect(await readers.read('page', page('second'), ofA)).toMatchObject({ kind: 'read' });
  const { reading, kill } = await beginEndless();
  kill();
  expect(await reading).toEqual({ kind: 'costly' });
  expect(await readers.read('page', page('third'), ofA)).toMatchObject({ kind: 'read' });
});

test('a caller who aborts ends the process, and the document is not remembered as costly', async () => {
  open({ limits: { processorMs: 500 } });
  const stop = new AbortController();
  const reading = readers.read('page', slowPage, { ...ofA, signal: stop.signal });
  await until(() => readerProcesses().length === 1);
  stop.abort(new Error('stopped'));
  await expect(reading).rejects.toThrow('stopped');
  await until(() => readerProcesses().length === 0);
  const again = readers.read('page', slowPage, ofA);
  await until(() => readerProcesses().length === 1);
  expect(await again).toEqual({ kind: 'costly' });
});

test('A space reads one document at a time, other spaces overtake it, and its full queue refuses more', async () => {
  open({ places: 2, waitingOfOne: 1, limits: endless });
  const { reading: slow, kill } = await beginEndless();
  const others = ['one', 'two', 'three'].map((text) => readers.read('page', page(text), ofA));
  const refused = Promise.allSettled(others).then((all) => all.filter(({ status }) => status === 'rejected'));
  expect(await Promise.race([readers.read('page', page('passes'), ofB), refused, slow])).toMatchObject({
    value: { text: 'passes' },
  });
  kill();
  expect(await slow).toEqual({ kind: 'costly' });
  const busy = { reason: { code: 'READERS_BUSY', kind: 'unavailable' } };
  expect(await refused).toMatchObject([busy, busy]);
});

test('a document waits for a slot no longer than the deadline', async () => {
  open({ places: 1, maxWaitMs: 200 });
  const slow = readers.read('page', slowPage, ofA);
  const stop = new AbortController();
  const stopped = readers.read('page', page('stopped'), { ...ofB, signal: stop.signal });
  stop.abort(new Error('no more'));
  await expect(stopped).rejects.toThrow('no more');
  await expect(readers.read('page', page('late'), ofB)).rejects.toMatchObject({ code: 'READERS_BUSY' });
  readers.close();
  await expect(slow).rejects.toThrow('has ended');
});

test('an idle process is ended after a while', async () => {
  open({ idleMs: 50 });
  await readers.read('page', page('one'), ofA);
  await until(() => readerProcesses().length === 0);
});
