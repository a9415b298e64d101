import type { Service } from '../../stack/services.ts';
import { supervise } from '../../stack/supervise.ts';

/** A fake service. `end` ends it. */
function createService() {
  const { promise: exited, resolve: end } = Promise.withResolvers<void>();
  const service = {
    title: 'The part',
    exited,
    describeEnd: () => 'The part ended with code 1: the disk is full',
    stop: async () => end(),
    abort: async () => end(),
  } as unknown as Service;
  return { service, end };
}

const { signal } = new AbortController();

test('a service that ends is started again, and the new one replaces it', async () => {
  const [first, second] = [createService(), createService()];
  const lines: string[] = [];
  const { promise: restarted, resolve: onRestart } = Promise.withResolvers<void>();
  const report = (line: string) => void lines.push(line);
  const part = supervise(first, { start: async () => second, report, onRestart, signal, backoffMs: [1] });
  first.end();
  await restarted;
  expect(part.now()).toBe(second);
  expect(lines).toEqual([
    'The part ended with code 1: the disk is full. It is started again in 0.001 s.',
    'The part runs again.',
  ]);
  await part.stop();
  await second.service.exited;
});

test('a service that cannot be restarted is reported with the error of the last attempt', async () => {
  const first = createService();
  let starts = 0;
  const start = async () => {
    starts += 1;
    throw new Error(`start ${starts} failed`);
  };
  const nothing = () => undefined;
  const part = supervise(first, { start, report: nothing, onRestart: nothing, signal, backoffMs: [1, 1, 1] });
  first.end();
  expect(await part.failed).toBe('start 3 failed');
});

test('restarts stop if the service keeps ending at once', async () => {
  const services = Array.from({ length: 3 }, createService);
  for (const { end } of services) end();
  const queue = services.slice(1);
  const start = async () => queue.shift() ?? createService();
  const nothing = () => undefined;
  const part = supervise(services[0] ?? createService(), {
    start,
    report: nothing,
    onRestart: nothing,
    signal,
    backoffMs: [1, 1],
  });
  expect(await part.failed).toBe('The part ended with code 1: the disk is full');
});

test('a stopped service is not started again', async () => {
  const first = createService();
  const start = async (): Promise<never> => {
    throw new Error('must not be called');
  };
  const lines: string[] = [];
  const part = supervise(first, { start, report: (line) => void lines.push(line), onRestart: () => undefined, signal });
  await part.stop();
  expect(lines).toEqual([]);
});

test('a service that ends during a shutdown is not started again', async () => {
  const first = createService();
  const all = new AbortController();
  const lines: string[] = [];
  const start = async (): Promise<never> => {
    throw new Error('must not be called');
  };
  const report = (line: string) => void lines.push(line);
  const part = supervise(first, { start, report, onRestart: () => undefined, signal: all.signal, backoffMs: [1] });
  all.abort();
  first.end();
  await part.stop();
  expect(lines).toEqual([]);
});

describe('a service that runs but does not answer probes', () => {
  const often = { backoffMs: [1], probeEveryMs: 1, maxSilentProbes: 3 };

  test('is ended and started again after three failed probes in a row', async () => {
    const [first, second] = [createService(), createService()];
    const lines: string[] = [];
    const { promise: restarted, resolve: onRestart } = Promise.withResolvers<void>();
    const report = (line: string) => void lines.push(line);
    const probe = async (part: typeof first) => {
      if (part === first) throw new Error('It hangs.');
    };
    const part = supervise(first, { start: async () => second, report, onRestart, signal, probe, ...often });
    await restarted;
    expect(part.now()).toBe(second);
    expect(lines[0]).toBe('The part runs, but has not answered 3 times in a row. It is ended.');
    await part.stop();
  });

  test('is left alone if it answers every third probe', async () => {
    const first = createService();
    const lines: string[] = [];
    let probes = 0;
    const { promise: probedOften, resolve } = Promise.withResolvers<void>();
    const probe = async () => {
      probes += 1;
      if (probes === 30) resolve();
      if (probes % 3 !== 0) throw new Error('It is slow.');
    };
    const report = (line: string) => void lines.push(line);
    const start = async () => createService();
    const part = supervise(first, { start, report, onRestart: () => undefined, signal, probe, ...often });
    await probedOften;
    expect([part.now() === first, lines]).toEqual([true, []]);
    await part.stop();
  });
});
