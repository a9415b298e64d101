import { DocumentReaders, type ReaderOptions } from '../../../integrations/readers/documentReaders.ts';
import { buildPdf } from '../../builders/files.ts';
import { slowPage } from '../../builders/hostilePages.ts';
import { until } from '../../support/processes.ts';
import { processorMs, readerProcesses } from '../../support/readerProcesses.ts';

/**
 * The pool of processes that read: who waits, who is ended, what is remembered. What they read is in the tests beside
 * this one.
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

/** Begins to read what takes for ever, until its process is killed. */
async function beginEndless() {
  await readers.page(page('first'), ofA);
  const [working] = readerProcesses() as [number];
  const before = processorMs(working);
  const reading = readers.page(slowPage, ofA);
  await until(() => processorMs(working) > before + 100);
  return { reading, kill: () => process.kill(working, 'SIGKILL') };
}

test('a process is used again for its space, and never for another', async () => {
  open({ places: 1 });
  expect(await readers.page(page('one'), ofA)).toEqual({
    kind: 'read',
    value: { title: 'T', text: 'one', isCut: false },
  });
  const first = readerProcesses();
  await readers.page(page('two'), ofA);
  await readers.pdf(buildPdf(['three']), ofA);
  expect(readerProcesses()).toEqual(first);
  await readers.page(page('four'), ofB);
  await until(() => readerProcesses().length === 1);
  expect(readerProcesses()).not.toEqual(first);
});

test('a process that has read fifty documents makes room for a new one', async () => {
  open();
  await readers.page(page('first'), ofA);
  const first = readerProcesses();
  for (let number = 0; number < 50; number++) await readers.page(page(`page ${number}`), ofA);
  expect(readerProcesses()).not.toEqual(first);
});

test('reading that takes too long is ended without blocking the event loop, and the same bytes are not tried again', async () => {
  const limits = { processorMs: 500 };
  open({ limits });
  let turns = 0;
  const timer = setInterval(() => turns++, 10);
  expect(await readers.page(slowPage, ofA)).toEqual({ kind: 'costly' });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
  await until(() => readerProcesses().length === 0);
  expect(await readers.page(slowPage, ofA)).toEqual({ kind: 'costly' });
  expect(await readers.page(slowPage, ofB)).toEqual({ kind: 'costly' });
  expect(readerProcesses()).toEqual([]);
  // A busy machine may take longer than this for the start of a parser.
  limits.processorMs = Infinity;
  expect(await readers.page(page('next'), ofA)).toMatchObject({ kind: 'read' });
});

test('the clock ends what the processor’s time does not', async () => {
  open({ limits: { timeMs: 300 } });
  expect(await readers.page(slowPage, ofA)).toEqual({ kind: 'costly' });
});

test('a process that is killed while it reads is the end of that document; one that was killed before is replaced', async () => {
  open({ limits: endless });
  await readers.page(page('first'), ofA);
  const [idle] = readerProcesses();
  process.kill(idle as number, 'SIGKILL');
  // Its end has not been noticed yet.
  expect(await readers.page(page('second'), ofA)).toMatchObject({ kind: 'read' });
  const { reading, kill } = await beginEndless();
  kill();
  expect(await reading).toEqual({ kind: 'costly' });
  expect(await readers.page(page('third'), ofA)).toMatchObject({ kind: 'read' });
});

test('a caller who gives up ends the process, and the document is not remembered', async () => {
  open({ limits: { processorMs: 500 } });
  const stop = new AbortController();
  const reading = readers.page(slowPage, { ...ofA, signal: stop.signal });
  await until(() => readerProcesses().length === 1);
  stop.abort(new Error('stopped'));
  await expect(reading).rejects.toThrow('stopped');
  await until(() => readerProcesses().length === 0);
  const again = readers.page(slowPage, ofA);
  await until(() => readerProcesses().length === 1);
  expect(await again).toEqual({ kind: 'costly' });
});

test('a full queue refuses; of one space one is read at a time, and another space passes it', async () => {
  open({ places: 2, waitingOfOne: 1, limits: endless });
  const { reading: slow, kill } = await beginEndless();
  const others = ['one', 'two', 'three'].map((text) => readers.page(page(text), ofA));
  const refused = Promise.allSettled(others).then((all) => all.filter(({ status }) => status === 'rejected'));
  expect(await Promise.race([readers.page(page('passes'), ofB), refused, slow])).toMatchObject({
    value: { text: 'passes' },
  });
  kill();
  expect(await slow).toEqual({ kind: 'costly' });
  const busy = { reason: { code: 'READERS_BUSY', kind: 'unavailable' } };
  expect(await refused).toMatchObject([busy, busy]);
});

test('no document waits for a place longer than the deadline', async () => {
  open({ places: 1, maxWaitMs: 200 });
  const slow = readers.page(slowPage, ofA);
  const stop = new AbortController();
  const stopped = readers.page(page('stopped'), { ...ofB, signal: stop.signal });
  stop.abort(new Error('no more'));
  await expect(stopped).rejects.toThrow('no more');
  await expect(readers.page(page('late'), ofB)).rejects.toMatchObject({ code: 'READERS_BUSY' });
  readers.close();
  await expect(slow).rejects.toThrow('has ended');
});

test('a process without work is ended after a while', async () => {
  open({ idleMs: 50 });
  await readers.page(page('one'), ofA);
  await until(() => readerProcesses().length === 0);
});
