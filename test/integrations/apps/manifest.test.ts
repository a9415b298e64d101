import { loadContract } from '../../../api/frame/contract.ts';
import { manifestSchema } from '../../../integrations/apps/manifestSchema.ts';
import { manifestOf } from '../../../integrations/apps/readManifest.ts';
import { DocumentReaders } from '../../../integrations/readers/documentReaders.ts';
import { checkAppSchedule } from '../../../models/apps/checkSchedule.ts';

const readers = new DocumentReaders();
const limits = { minIntervalMs: 300_000 };
const now = new Date('2026-01-31T12:00:00.000Z');
afterAll(() => readers.close());

async function read(text: string | Buffer) {
  const reading = await readers.read('yaml', Buffer.from(text), { spaceId: 'spc_1' });
  return reading.kind === 'read'
    ? manifestOf(reading.value, (written) => checkAppSchedule(written, limits, now))
    : reading;
}

const minimal = 'name: Report\ncomponents:\n  - name: build\n    kind: process\n    command: make\n';

test('a manifest is read, and absent fields get their defaults', async () => {
  const build = { name: 'build', kind: 'process', command: 'make', cwd: '', env: {}, secrets: [] };
  const filled = { timeoutSeconds: 3_600, retry: { attempts: 1, delaySeconds: 10 }, concurrency: 1, isDefault: true };
  expect(await read(minimal)).toEqual({ manifest: { name: 'Report', components: [{ ...build, ...filled }] } });
  const whole = `${minimal}    cwd: src/app
    env: { PORT: 8080, DEBUG: true, NAME: a b }
    secrets: [API_TOKEN]
    timeout: 60
    retry: { attempts: 3, delay: 0 }
    concurrency: 4
  - { name: other, kind: process, command: "true", default: true }
`;
  expect(await read(whole)).toMatchObject({
    manifest: {
      components: [
        {
          cwd: 'src/app',
          env: { PORT: '8080', DEBUG: 'true', NAME: 'a b' },
          secrets: ['API_TOKEN'],
          timeoutSeconds: 60,
          retry: { attempts: 3, delaySeconds: 0 },
          concurrency: 4,
          isDefault: false,
        },
        { name: 'other', isDefault: true },
      ],
    },
  });
});

test.each([
  ['a field that there is not', `${minimal}    cmd: x\n`, 6, 5, 'there is no field `cmd` here'],
  ['a field of the top', `nam: x\n${minimal}`, 1, 1, 'there is no field `nam` here'],
  [
    'a kind that there is not',
    minimal.replace('process', 'daemon'),
    4,
    11,
    'kind must be one of process, webhook, schedule, web',
  ],
  ['what is missing', 'name: x\n', 1, 1, '`components` is missing'],
  ['a number for a text', minimal.replace('make', '5'), 5, 14, 'command must be a text'],
  ['a timeout of too long', `${minimal}    timeout: 90000\n`, 6, 14, 'timeout must be at most 86400'],
  ['no name of a variable', `${minimal}    env: { A-B: x }\n`, 6, 12, 'A-B is not a name of a variable'],
  [
    'a folder elsewhere',
    `${minimal}    cwd: a/../../b\n`,
    6,
    10,
    'must be a folder of the app: relative, without ".."',
  ],
  ['a variable twice', `${minimal}    env: { A: x }\n    secrets: [A]\n`, 7, 15, 'A is in `env` too'],
  [
    'a variable that makes programs load other code',
    `${minimal}    env: { A: x, LD_PRELOAD: ./evil.so }\n`,
    6,
    30,
    'LD_PRELOAD can make programs load other code, so it is not allowed here; set it in the command',
  ],
  ['a NUL', `${minimal}    env: { A: "x\\0" }\n`, 6, 15, 'must not have a NUL'],
  [
    'two of a name',
    `${minimal}  - { name: build, kind: process, command: b }\n`,
    6,
    13,
    'another component is called build too',
  ],
  ['an alias', 'name: &a x\ncomponents: *a\n', 1, 10, 'anchors and aliases are not supported'],
  ['a list', '- a\n', 1, 1, 'must be a map of names and values'],
  ['what another kind has', `${minimal}    port: 80\n`, 6, 5, 'only a web component has `port`'],
  [
    'what its kind needs',
    `${minimal.replace('process', 'schedule')}    cron: 0 8 * * *\n`,
    3,
    5,
    '`timeZone` is missing',
  ],
  ['a name that is none', minimal.replace('build', 'Bu ild'), 3, 11, expect.stringMatching(/^name is not a name/)],
  ['no components', 'name: x\ncomponents: []\n', 2, 13, 'components must not be empty'],
])('the fault "%s" is reported with its line and column', async (_what, text, line, column, detail) => {
  expect(await read(text)).toEqual({
    faults: expect.arrayContaining([{ line, column, detail }]),
  });
});

test('one fault does not hide the others', async () => {
  const nameless =
    '  - { kind: process, command: x, cwd: /etc }\n  - { name: a, kind: process, command: x, secrets: [A], env: { A: b } }\n';
  const { faults } = (await read(`components:\n${nameless}`)) as { faults: { detail: string }[] };
  expect(faults.map(({ detail }) => detail)).toEqual([
    'must be a folder of the app: relative, without ".."',
    'A is in `env` too',
    '`name` is missing',
    '`name` is missing',
  ]);
});

test.each([
  ['0 8 * * *', 'Europe/Berlin', 3_600, undefined],
  ['* * * * *', 'UTC', 0, 'The cron expression runs too often. The minimum interval is 5 minutes.'],
  ['0 0 30 2 *', 'UTC', 0, 'No date matches this cron expression, so it would never run.'],
  ['0 0 8 * * *', 'UTC', 0, expect.stringMatching(/^This is not a cron expression/)],
  ['0 8 * * *', 'Mars/Sea', 0, expect.stringMatching(/^There is no such time zone/)],
  ['*/5 * * * *', 'UTC', 300, 'The jitter must be shorter than the time between two runs.'],
])('a manifest with the schedule %s in %s with a jitter of %i is checked', async (cron, timeZone, jitter, detail) => {
  const component = { name: 'nightly', kind: 'schedule', command: 'x', cron, timeZone, jitter };
  const text = await read(JSON.stringify({ name: 'App', components: [component] }));
  const filled = { overlap: 'skip', jitterSeconds: jitter, cron, timeZone, isDefault: true };
  if (detail === undefined) expect(text).toMatchObject({ manifest: { components: [filled] } });
  else expect(text).toMatchObject({ faults: [{ line: 1, detail }] });
});

test('only a web component has a port, and it must have one', async () => {
  const component = { name: 'site', kind: 'web', command: 'x' };
  const of = (...components: object[]) => read(JSON.stringify({ name: 'App', components }));
  expect(await of({ ...component, port: 3_000 })).toMatchObject({
    manifest: { components: [{ kind: 'web', port: 3_000, isDefault: true }] },
  });
  expect(await of(component)).toMatchObject({ faults: [{ detail: '`port` is missing' }] });
  expect(await of({ ...component, port: 70_000 })).toMatchObject({
    faults: [{ detail: 'port must be at most 65535' }],
  });
  expect(await of({ ...component, kind: 'process', port: 80 })).toMatchObject({
    faults: [{ detail: 'only a web component has `port`' }],
  });
});

test('two defaults, a duplicate key, invalid YAML and invalid UTF-8 are refused', async () => {
  const two = ['a', 'b'].map((name) => `  - { name: ${name}, kind: process, command: x, default: true }\n`).join('');
  expect(await read(`name: x\ncomponents:\n${two}`)).toMatchObject({
    faults: [{ line: 4, detail: 'only one component of a kind can be the default' }],
  });
  expect(await read(`name: a\nname: b\n`)).toMatchObject({ faults: [{ line: 2, column: 1 }] });
  expect(await read('name: "a\n')).toMatchObject({ faults: [{ line: expect.any(Number) }] });
  expect(await read('a: b\n---\nc: d\n')).toHaveProperty('faults');
  expect(await read('')).toEqual({ faults: [{ line: 1, column: 1, detail: 'must be a map of names and values' }] });
  expect(await read(Buffer.from([0xff, 0xfe, 0x61]))).toEqual({
    faults: [{ line: 1, column: 1, detail: 'is not UTF-8' }],
  });
  expect(await read('name: !!js/function x\ncomponents: []\n')).toHaveProperty('faults');
});

test('deeply nested, very long and exponential documents are refused', async () => {
  const nested = '['.repeat(30_000);
  const tooDeep = { faults: [{ line: expect.any(Number), column: expect.any(Number), detail: 'is nested too deep' }] };
  expect(await read(`name: ${nested}`)).toEqual(tooDeep);
  expect(await read(Array.from({ length: 300 }, (_, at) => `${' '.repeat(at)}a:`).join('\n'))).toEqual(tooDeep);
  const bomb = `a: &a [x,x,x]\n${'bcdefghi'.replace(/./g, (name, at) => `${name}: &${name} [${`*${'abcdefgh'[at]},`.repeat(9)}]\n`)}`;
  expect(await read(bomb)).toHaveProperty('faults');
  const many = Array.from({ length: 2_000 }, (_, at) => `k${at}: 1`).join('\n');
  const { faults } = (await read(many)) as { faults: unknown[] };
  expect(faults).toHaveLength(20);
  expect(await read(`name: [${'1,'.repeat(10_000)}]`)).toEqual({
    faults: [{ line: 1, column: 1, detail: 'has more than 5000 values' }],
  });
});

test('the contract has the same schema as the check', () => {
  const { document } = loadContract();
  const published = document.components?.schemas?.AppManifest;
  expect(withoutWords(published)).toEqual(withoutWords(manifestSchema));
});

function withoutWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutWords);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key, of]) => key !== 'description' || typeof of !== 'string');
  return Object.fromEntries(entries.map(([key, of]) => [key, withoutWords(of)]));
}
