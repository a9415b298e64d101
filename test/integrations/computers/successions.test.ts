import { Successions } from '../../../integrations/computers/drives/successions.ts';

/** A request that ends when the test says so. */
function request(successions: Successions, process: string | undefined, log: string[], name: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = successions.run(process, async () => {
    log.push(`${name} begins`);
    await promise;
    log.push(`${name} ends`);
  });
  return { done, end: resolve };
}

test('Requests of a new process begin when those of the killed one have ended, and its later ones are refused', async () => {
  const successions = new Successions();
  const log: string[] = [];
  const before = [request(successions, 'old', log, 'first'), request(successions, 'old', log, 'second')];
  const after = request(successions, 'new', log, 'third');
  after.end();
  await expect(successions.run('old', async () => undefined)).rejects.toMatchObject({ code: 'DAEMON_REPLACED' });
  for (const { end } of before) end();
  await after.done;
  expect(log).toEqual(['first begins', 'second begins', 'first ends', 'second ends', 'third begins', 'third ends']);
});

test('Requests of one process, and of one that does not say which it is, run beside each other', async () => {
  const successions = new Successions();
  const log: string[] = [];
  const all = [
    ...['one', 'two'].map((name) => request(successions, 'same', log, name)),
    request(successions, undefined, log, 'older'),
  ];
  expect(log).toEqual(['one begins', 'two begins', 'older begins']);
  for (const { end } of all) end();
  await Promise.all(all.map(({ done }) => done));
});

test('A failed request does not keep a new process waiting', async () => {
  const successions = new Successions();
  await expect(
    successions.run('old', async () => {
      throw new Error('failed');
    }),
  ).rejects.toThrow('failed');
  expect(await successions.run('new', async () => 'done')).toBe('done');
});
