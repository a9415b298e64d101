import { signWebhook, verifyWebhook } from '../../../integrations/webhooks/standardWebhooks.ts';

// The example in the standard's own libraries.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const timestamp = '1614265330';
const raw = Buffer.from('{"test": 2432232314}');
const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
const nowMs = 1_614_265_330_000;

const verify = (changed: object = {}, secrets = [secret], body = raw, at = nowMs) =>
  verifyWebhook(body, { id, timestamp, signature, ...changed }, secrets, at);

test("the standard's own example is valid, and signing it gives the same signature", () => {
  expect(verify()).toBe(id);
  expect(signWebhook(raw, { id, timestamp }, secret)).toBe(signature);
});

test('one valid signature of several, and one valid secret of several, is enough', () => {
  const other = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
  expect(verify({ signature: `v1,AAAA v1a,xyz ${signature}` })).toBe(id);
  expect(verify({}, [other, secret])).toBe(id);
  const body = Buffer.from([0xff, 0xfe, 0x00]);
  expect(verify({ signature: signWebhook(body, { id, timestamp }, other) }, [secret, other], body)).toBe(id);
});

test.each<[string, () => unknown, string]>([
  ['another body', () => verify({}, [secret], Buffer.from('{"test": 2432232315}')), 'webhook-signature is not made of'],
  ['another id', () => verify({ id: 'msg_2' }), 'webhook-signature is not made of'],
  ['an id with a dot', () => verify({ id: `${id}.1` }), 'webhook-id has other characters'],
  ['an id of 201 characters', () => verify({ id: 'a'.repeat(201) }), 'webhook-id has other characters'],
  ['no id', () => verify({ id: undefined }), 'webhook-id is missing'],
  ['another time', () => verify({ timestamp: '1614265331' }), 'webhook-signature is not made of'],
  ['no time', () => verify({ timestamp: undefined }), 'webhook-timestamp is missing'],
  ['a time that is no number', () => verify({ timestamp: '16142653e3' }), 'webhook-timestamp is not a number'],
  ['no signature', () => verify({ signature: undefined }), 'webhook-signature is missing'],
  [
    'another version',
    () => verify({ signature: signature.replace('v1,', 'v2,') }),
    'has no signature of the version v1',
  ],
  ['a part of the signature', () => verify({ signature: signature.slice(0, -5) }), 'webhook-signature is not made of'],
  ['an empty signature', () => verify({ signature: 'v1,' }), 'webhook-signature is not made of'],
  ['another secret', () => verify({}, ['whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA']), 'webhook-signature is not made of'],
  ['no secret', () => verify({}, []), 'webhook-signature is not made of'],
  ['too old', () => verify({}, [secret], raw, nowMs + 301_000), 'webhook-timestamp is more than 300 seconds old'],
  [
    'too far ahead',
    () => verify({}, [secret], raw, nowMs - 301_000),
    'webhook-timestamp is more than 300 seconds ahead',
  ],
])('%s is refused', (_what, attempt, why) => {
  const refusal = { kind: 'unauthenticated', code: 'INVALID_SIGNATURE', message: expect.stringContaining(why) };
  expect(attempt).toThrow(expect.objectContaining(refusal));
});

test('a timestamp may be five minutes old or ahead', () => {
  expect(verify({}, [secret], raw, nowMs + 299_000)).toBe(id);
  expect(verify({}, [secret], raw, nowMs - 299_000)).toBe(id);
});
