import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { createRedactor } from '../../models/secrets/redactor.ts';
import { keepOutOfLogs, withoutKnownSecrets } from '../../telemetry/knownSecrets.ts';
import { SecretAutomaton } from '../../telemetry/secretAutomaton.ts';
import { formsWithin, piecesOf, redacted, secretForms } from '../../telemetry/secretForms.ts';
import { atOnce, inSlices, sliceLength } from '../../telemetry/slices.ts';

/** A simple redactor to compare with: finds every occurrence of every text, and joins those that overlap or touch. */
function naive(texts: readonly string[], text: string): string {
  const isSecret = new Array<boolean>(text.length).fill(false);
  for (const each of texts) {
    for (let at = text.indexOf(each); at >= 0; at = text.indexOf(each, at + 1))
      isSecret.fill(true, at, at + each.length);
  }
  return [...text.split('')].map((unit, at) => (isSecret[at] ? (isSecret[at - 1] ? '' : redacted) : unit)).join('');
}

function inPieces(texts: readonly string[], text: string, cuts: readonly number[]): string {
  const stream = createRedactor(texts).stream();
  const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b), text.length];
  const out = at.slice(1).map((end, index) => stream.push(text.slice(at[index], end)));
  return out.join('') + stream.rest();
}

/**
 * Only a few letters, so that texts contain each other, overlap and repeat. The long ones exceed the part of a text
 * that the automaton holds.
 */
const word = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 1, maxLength: 9 });
const long = fc
  .tuple(word, fc.integer({ min: 64, max: 64 }))
  .map(([unit, length]) => unit.repeat(length).slice(0, length));
const few = { maxLength: 8 };
/** If all secrets are this long, the redactor may skip text between them. */
const longer = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 3, maxLength: 9 });
const secrets = fc.oneof(
  fc.array(fc.oneof({ weight: 3, arbitrary: word }, { weight: 1, arbitrary: long }), few),
  fc.array(fc.oneof({ weight: 3, arbitrary: longer }, { weight: 1, arbitrary: long }), few),
);

test('a stream, a whole text and a simple search give the same result, wherever the stream is cut', () => {
  const cases = secrets.chain((texts) => {
    const part = fc.oneof(
      word,
      fc.constantFrom('', 'x', ...texts),
      fc.constantFrom('', ...texts).map((text) => text.slice(0, -1)),
    );
    const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));
    return fc.tuple(fc.constant(texts), text, fc.array(fc.nat(), { maxLength: 8 }));
  });
  fc.assert(
    fc.property(cases, ([texts, text, cuts]) => {
      const expected = naive(texts, text);
      expect(createRedactor(texts).text(text)).toBe(expected);
      expect(inPieces(texts, text, cuts)).toBe(expected);
      expect(inPieces(texts, text, [...Array(text.length).keys()])).toBe(expected);
    }),
    { numRuns: 2_000 },
  );
});

test('the automaton reads only a fraction of a text without secrets, for one secret and for hundreds', () => {
  const next = jest.spyOn(SecretAutomaton.prototype, 'next');
  const text = 'the and of 17 to in is you {"that": "it was for on are"}\n'.repeat(2_000);
  const read = (count: number) => {
    const forms = Array.from({ length: count }, (_none, n) => secretForms(hashed(`secret ${n}`))).flat();
    const redactor = createRedactor(forms);
    next.mockClear();
    expect(redactor.text(text)).toBe(text);
    return next.mock.calls.length;
  };
  expect(read(1)).toBeLessThan(text.length / 50);
  expect(read(300)).toBeLessThan(text.length / 5);
  next.mockRestore();
});

const hashed = (seed: string) => createHash('sha256').update(seed).digest('base64url').slice(0, 24);

test('a stream holds back only text that may be the beginning of a secret', () => {
  const stream = createRedactor(['secret-1', 's'.repeat(64)]).stream();
  expect(stream.push('hello se')).toBe('hello ');
  expect(stream.push('ven secret-')).toBe('seven ');
  expect(stream.push('2')).toBe('secret-2');
  expect(stream.push('secret-1 and')).toBe('[redacted] and');
  expect(stream.rest()).toBe('');
});

const value = 'pa55/wörd?&~*+ "x"\\>>>???';
const bytes = Buffer.from(value);
const percent = encodeURIComponent(value);

const spellings: [string, string][] = [
  ['as it is', value],
  ['JSON', JSON.stringify(value).slice(1, -1)],
  ['JSON in JSON', JSON.stringify(JSON.stringify(value)).slice(3, -3)],
  ['ASCII JSON', JSON.stringify(value).slice(1, -1).replace('ö', '\\u00f6')],
  ['base64', bytes.toString('base64')],
  ['base64 without padding', bytes.toString('base64').replace(/=+$/, '')],
  ['base64url', bytes.toString('base64url')],
  ['hex', bytes.toString('hex')],
  ['HEX', bytes.toString('hex').toUpperCase()],
  ['percent', percent],
  ['percent, lower case', percent.replace(/%../g, (byte) => byte.toLowerCase())],
  ['a form', new URLSearchParams({ v: value }).toString().slice(2)],
];

test.each(spellings)('a secret is redacted in the form: %s', (_name, spelled) => {
  const redactor = createRedactor(secretForms(value));
  expect(redactor.text(`before ${spelled} after`)).toBe('before [redacted] after');
  expect(redactor.text(spelled)).toBe(redacted);
});

/** Breaks text into lines as `base64`, `xxd -p` and `fold` do. */
const fold = (text: string, width: number, end = '\n') =>
  `${(text.match(new RegExp(`.{1,${width}}`, 'gs')) ?? []).join(end)}${end}`;
const longValue = Array.from({ length: 5 }, (_none, n) => hashed(`part ${n}`)).join('');
const longLines = Array.from({ length: 8 }, (_none, n) => hashed(`line ${n}`) + hashed(`more ${n}`));
const pem = ['-----BEGIN KEY-----', ...longLines, '-----END KEY-----', ''].join('\n');

/** Not redacted: the last characters of base64, which a newline after the value changes, and the end of a line. */
const mostShown = 6;

/** The length of the longest part of the secret in `shown`. */
function longestShown(secret: string, shown: string): number {
  for (let length = secret.length; length > 0; length--) {
    for (let at = 0; at + length <= secret.length; at++)
      if (shown.includes(secret.slice(at, at + length))) return length;
  }
  return 0;
}

const programs: [string, (text: string) => string][] = [
  ['base64', (text) => fold(Buffer.from(text).toString('base64'), 76)],
  ['base64 of a line', (text) => fold(Buffer.from(`${text}\n`).toString('base64'), 76)],
  ['openssl base64', (text) => fold(Buffer.from(text).toString('base64'), 64)],
  ['base64url in lines', (text) => fold(Buffer.from(text).toString('base64url'), 76)],
  ['base64 at a terminal', (text) => fold(Buffer.from(text).toString('base64'), 76, '\r\n')],
  ['xxd -p', (text) => fold(Buffer.from(text).toString('hex'), 60)],
  ['xxd -p -u of a line', (text) => fold(Buffer.from(`${text}\n`).toString('hex').toUpperCase(), 60)],
];
for (const width of [40, 60, 72, 80]) programs.push([`fold -w ${width}`, (text) => fold(text, width)]);

test.each(programs)('a long value that is broken into lines by %s is redacted', (name, spell) => {
  for (const secret of name.startsWith('fold') ? [longValue] : [longValue, pem.trim()]) {
    const spelled = spell(secret);
    const clean = createRedactor(secretForms(secret)).text(`before ${spelled}after`);
    expect(longestShown(spelled, clean.replace('before ', '').replace('after', ''))).toBeLessThanOrEqual(mostShown);
  }
});

test('a line of a multi-line secret is redacted in each encoding', () => {
  const redactor = createRedactor(secretForms(pem));
  for (const line of longLines) {
    for (const spelled of [
      line,
      Buffer.from(line).toString('base64'),
      Buffer.from(`${line}\n`).toString('base64'),
      Buffer.from(line).toString('hex'),
    ]) {
      expect(
        longestShown(spelled, redactor.text(`before ${spelled} after`).replace('before ', '')),
      ).toBeLessThanOrEqual(mostShown);
    }
  }
});

describe.each(['base64', 'base64url'] as const)('a secret inside a longer text in %s is redacted', (encoding) => {
  test.each(['', 'u:', 'user:', 'a user:', 'admin@example.com:'])('Basic %ssecret', (user) => {
    for (const [secret, after] of ['correct horse', 'hunter2', 'sk_live_0123456789abcdef', 'ÿÿÿ>>>???'].flatMap(
      (each) => ['', ' ', '\n', '\nX: y'].map((end) => [each, end] as const),
    )) {
      const clean = createRedactor(secretForms(secret)).text(
        `Basic ${Buffer.from(user + secret + after).toString(encoding)}`,
      );
      const left = Buffer.from(clean.replace(/^Basic |\[redacted\]|=/g, ''), 'base64').toString('latin1');
      expect(clean).toContain(redacted);
      // Only the bits that the characters at the secret's edges share with their neighbours may be left.
      for (let at = 0; at + 3 <= secret.length; at++)
        expect(left).not.toContain(
          Buffer.from(secret)
            .toString('latin1')
            .slice(at, at + 3),
        );
    }
  });
});

test('a line of a multi-line secret is redacted alone, unless it is short, a ruler or the frame of a key', () => {
  const key = `-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort line\n----------------------\n  "private_key_id": "0f1e2d3c",\nend\n-----END PRIVATE KEY-----`;
  const redactor = createRedactor(secretForms(key));
  expect(redactor.text('see MIIEvQIBADANBgkqhkiG9w0BAQEFAASC, and "private_key_id": "0f1e2d3c", there')).toBe(
    'see [redacted], and [redacted] there',
  );
  const common = '-----BEGIN PRIVATE KEY-----\nshort line end\n----------------------\n-----END PRIVATE KEY-----';
  expect(redactor.text(common)).toBe(common);
  expect(redactor.text(`x${key}y`)).toBe('x[redacted]y');
  expect(redactor.text(JSON.stringify({ key }))).toBe('{"key":"[redacted]"}');
});

test('a long secret is redacted as a whole in each encoding', () => {
  const secret = Array.from(
    { length: 400 },
    (_, index) => `line ${index} of a long secret: ${(index * 7_919) % 104_729}`,
  ).join('\n');
  const redactor = createRedactor(secretForms(secret));
  const all = Buffer.from(secret);
  for (const spelled of [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    all.toString('base64'),
    all.toString('hex'),
  ])
    expect(redactor.text(`<${spelled}>`)).toBe('<[redacted]>');
  expect(redactor.text(`<${Buffer.from(`user:${secret}`).toString('base64')}>`).length).toBeLessThan(30);
});

test('a very short value is not redacted, and a secret in keys and numbers of JSON is', () => {
  expect(secretForms('  abc ')).toEqual([]);
  expect(createRedactor([]).isEmpty).toBe(true);
  const redactor = createRedactor(secretForms('123456'));
  expect(redactor.json({ 'is 123456': [123456, 12345, { deep: 'x123456' }] })).toEqual({
    'is [redacted]': [redacted, 12345, { deep: 'x[redacted]' }],
  });
});

test('the log redacts all secrets that this process has had in memory', async () => {
  const many = Array.from({ length: 200 }, (_, index) => `logged-secret-${index}-${index * 31}`);
  await keepOutOfLogs(['logged-before-the-others']);
  expect(withoutKnownSecrets('x logged-before-the-others y')).toBe('x [redacted] y');
  await keepOutOfLogs(many);
  for (const secret of ['logged-before-the-others', ...many]) {
    expect(withoutKnownSecrets(`a ${secret} b`)).toBe('a [redacted] b');
    expect(withoutKnownSecrets(`a ${Buffer.from(secret).toString('hex')} b`)).toBe('a [redacted] b');
  }
  await keepOutOfLogs(['the-last-secret']);
  expect(withoutKnownSecrets('the-last-secret, logged-before-the-others')).toBe('[redacted], [redacted]');
});

/** A value of the maximal size, with three bytes for each character. */
const large = (seed: number) =>
  Array.from({ length: 21_000 }, (_none, n) =>
    String.fromCharCode(0x4e00 + ((n * 7_919 + seed * 104_729) % 20_000)),
  ).join('');
const hostile: [string, string][] = [
  ['of random characters of three bytes', large(1)],
  ['of two control characters', '\u0001\u0002'.repeat(32_000)],
  ['of thousands of lines', Array.from({ length: 3_000 }, (_none, n) => hashed(`line ${n}`).slice(0, 20)).join('\n')],
];

test.each(hostile)('the work for a value %s is limited in total and for each slice', async (_name, secret) => {
  const most = 1_000;
  const slices: number[] = [];
  function* work() {
    const forms = yield* formsWithin([[secret]], most);
    yield* SecretAutomaton.building(forms);
    return forms;
  }
  const forms = await inSlices(work(), async (done) => void slices.push(done));
  expect(forms.length).toBeLessThanOrEqual(most + piecesOf(secret).length);
  // One more step takes as long as the value, which has no more pieces than that.
  expect(Math.max(0, ...slices)).toBeLessThanOrEqual(sliceLength + secret.length);
  expect(slices.reduce((sum, done) => sum + done, 0)).toBeLessThan((forms.length + most) * 64 * 3 + secret.length);
  expect(createRedactor(forms).text(`<${secret}>`)).toBe('<[redacted]>');
});

test('a small secret beside large ones is redacted in all encodings', () => {
  const forms = atOnce(formsWithin([[large(2)], ['a small secret'], [large(3)]], 100));
  expect(forms).toEqual(expect.arrayContaining(secretForms('a small secret')));
  const redactor = createRedactor(forms);
  for (const value of [large(2), large(3)]) expect(redactor.text(value)).toBe(redacted);
});

test('simultaneous works run one slice in each turn of the event loop', async () => {
  let turns = 0;
  const count = () => {
    turns++;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  function* work(): Generator<number, void> {
    for (let step = 0; step < 5; step++) yield sliceLength;
  }
  await Promise.all(Array.from({ length: 4 }, () => inSlices(work())));
  clearImmediate(timer);
  expect(turns).toBeGreaterThanOrEqual(4 * 5 - 1);
});

test('simultaneous calls of keepOutOfLogs share a build, and known values need none', async () => {
  const building = jest.spyOn(SecretAutomaton, 'building');
  const values = Array.from({ length: 50 }, (_none, n) => `shared-build-${n}`);
  await Promise.all(values.map((value) => keepOutOfLogs([value])));
  // One automaton for new values, and one for all values once there are too many new ones.
  expect(building.mock.calls.length).toBeLessThanOrEqual(2);
  building.mockClear();
  await Promise.all(values.map((value) => keepOutOfLogs([value])));
  expect(building).not.toHaveBeenCalled();
  building.mockRestore();
  for (const value of values) expect(withoutKnownSecrets(value)).toBe(redacted);
});

test('a value of the maximal size is redacted in the log', async () => {
  await keepOutOfLogs([large(4)]);
  expect(withoutKnownSecrets(`<${large(4)}>`)).toBe('<[redacted]>');
});
