import { StackError } from '../../stack/errors.ts';
import { type WaitOptions, waitUntil } from '../../stack/waiting.ts';

function createWait(changes: Partial<WaitOptions> = {}) {
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  const options = { title: 'The part', report, signal: new AbortController().signal, timeoutMs: 60_000, pollMs: 1 };
  return { lines, options: { ...options, ...changes } };
}

test('a long wait reports the last error, and returns the answer once there is one', async () => {
  const { lines, options } = createWait({ progressMs: 0 });
  let tries = 0;
  const probe = async () => {
    tries += 1;
    if (tries < 3) throw new Error('connection refused\nand more');
    return 'served';
  };
  expect(await waitUntil(probe, options)).toBe('served');
  expect(lines.at(-1)).toMatch(/^The part does not serve yet \(\d\.\d s: connection refused\); waiting …$/);
});

test('a timed-out wait fails with the cause of the last error', async () => {
  const { options } = createWait({ timeoutMs: 0 });
  const cause = Object.assign(new Error('14 UNAVAILABLE'), { details: 'history is not ready' });
  const wait = waitUntil(() => Promise.reject(new Error('Failed to connect', { cause })), options);
  await expect(wait).rejects.toThrow(StackError);
  await expect(wait).rejects.toThrow(/^The part does not serve after 0\.\d s: history is not ready$/);
});

test('the wait ends at once if the service has ended, the error is final, or the signal aborts', async () => {
  const refused = () => Promise.reject(new Error('no'));
  const assertAlive = () => {
    throw new StackError('The part ended with code 1.');
  };
  await expect(waitUntil(refused, createWait({ assertAlive }).options)).rejects.toThrow('The part ended with code 1.');
  await expect(waitUntil(refused, createWait({ isFinal: () => true }).options)).rejects.toThrow(/^no$/);
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(waitUntil(refused, createWait({ signal }).options)).rejects.toThrow('stopped');
});
