import { hostingFailure } from '../../../integrations/gitHosting/failures.ts';
import { signHub, verifyHubSignature } from '../../../integrations/gitHosting/index.ts';

const now = Date.parse('2026-01-31T12:00:00Z');

function answered(status: number, headers: Record<string, string> = {}, cause?: unknown): Error {
  return Object.assign(new Error('its own words'), { status, response: { headers }, cause });
}

test.each([
  ['half a minute', '30', 30],
  ['until a reset', undefined, 42],
  ['a day', '86400', 3_600],
])('the error for a rate limit has the time to wait: %s', (_what, after, seconds) => {
  const reset = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now / 1_000 + 42) };
  const headers = after === undefined ? reset : { 'retry-after': after };
  expect(hostingFailure(answered(403, headers), now)).toMatchObject({
    ...{ code: 'GIT_HOSTING_BUSY', kind: 'rateLimited', retryAfterSeconds: seconds },
  });
});

test('a wrong clock of this machine is given as the reason for a refused key', () => {
  const date = new Date(now - 300_000).toUTCString();
  expect(hostingFailure(answered(401, { date }), now)).toMatchObject({
    message: 'GitHub does not take the App’s key: this machine’s clock is 300 s ahead.',
  });
  expect(hostingFailure(answered(401, { date: new Date(now).toUTCString() }), now)).toMatchObject({
    message: 'GitHub does not take the App’s key.',
  });
});

test('no answer gives GIT_HOSTING_UNAVAILABLE, and a late one GIT_HOSTING_TOO_SLOW', () => {
  const unreached = Object.assign(new Error('connect ECONNREFUSED'), { status: 500 });
  expect(hostingFailure(unreached)).toMatchObject({ code: 'GIT_HOSTING_UNAVAILABLE', kind: 'unavailable' });
  const cause = new DOMException('too late', 'TimeoutError');
  const late = Object.assign(new Error('too late'), { status: 500, cause });
  expect(hostingFailure(late)).toMatchObject({ code: 'GIT_HOSTING_TOO_SLOW', kind: 'upstreamTimeout' });
});

test('the error does not contain the request with its credentials', () => {
  const error = Object.assign(answered(422), { request: { headers: { authorization: 'token secret' } } });
  expect(JSON.stringify([hostingFailure(error), (hostingFailure(error) as Error).cause ?? null])).not.toContain(
    'secret',
  );
});

test('a signature is valid for the exact bytes and either secret', () => {
  const raw = Buffer.from('{"a": 1}');
  const check =
    (signature: string | undefined, bytes = raw) =>
    () =>
      verifyHubSignature(bytes, signature, ['one', 'two']);
  expect(check(signHub(raw, 'one'))).not.toThrow();
  expect(check(signHub(raw, 'two'))).not.toThrow();
  for (const wrong of [
    undefined,
    '',
    'sha256=',
    signHub(raw, 'three'),
    `${signHub(raw, 'one')}0`,
    signHub(raw, 'one').slice(0, -1),
  ]) {
    expect(check(wrong)).toThrow('does not hold');
  }
  expect(check(signHub(raw, 'one'), Buffer.from('{"a":1}'))).toThrow('does not hold');
  expect(() => verifyHubSignature(raw, signHub(raw, ''), [])).toThrow('does not hold');
});
