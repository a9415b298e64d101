import { definitionOf } from '../../../models/environments/definition/definition.ts';
import {
  type CopiedFiles,
  digestsOf,
  type EnvironmentStep,
  noSetting,
  planOf,
  titleOf,
} from '../../../models/environments/steps.ts';

const steps: EnvironmentStep[] = [
  { run: 'one' },
  { env: { A: '1' } },
  { workdir: 'srv' },
  { run: 'two' },
  { user: 'app' },
  { copy: { from: '/files', to: 'in/' } },
  { workdir: '../opt' },
  { user: 'root' },
  { env: { A: '2', B: '3' } },
];

test('The title of a command leaves out the arguments of its Dockerfile, whatever they hold', () => {
  const { steps: read } = definitionOf({
    dockerfile: `FROM debian\nARG A="it's"\nARG B=\nRUN greet $A \\\n  && true\nRUN export C=1`,
  });
  expect(read.map((step) => ('run' in step ? titleOf(step) : ''))).toEqual([
    'run greet $A   && true',
    'run export C=1',
  ]);
  expect(titleOf({ run: "export A='1'\n" })).toBe("run export A='1' …");
});

test('Each step that changes files gets what the steps before it have set, and absolute paths', () => {
  const { work, end } = planOf(noSetting, steps);
  const set = { env: { A: '1' }, workdir: '/srv', user: null };
  expect(work).toEqual([
    { number: 1, step: { run: 'one' }, setting: noSetting },
    { number: 3, step: { workdir: '/srv' }, setting: set },
    { number: 4, step: { run: 'two' }, setting: set },
    { number: 5, step: { user: 'app' }, setting: { ...set, user: 'app' } },
    { number: 6, step: { copy: { from: '/files', to: '/srv/in/' } }, setting: { ...set, user: 'app' } },
    { number: 7, step: { workdir: '/opt' }, setting: { ...set, workdir: '/opt', user: 'app' } },
  ]);
  expect(end).toEqual({ env: { A: '2', B: '3' }, workdir: '/opt', user: null });
});

test.each([
  ['/a', '/a'],
  ['/a/', '/a/'],
  ['.', '/srv/'],
  ['./', '/srv/'],
  ['..', '/'],
  ['a/..', '/srv/'],
  ['a..', '/srv/a..'],
  ['/', '/'],
])('A file that is copied to %s goes to %s', (to, expected) => {
  const { work } = planOf({ ...noSetting, workdir: '/srv' }, [{ copy: { from: '/f', to } }]);
  expect(work[0]?.step).toEqual({ copy: { from: '/f', to: expected } });
});

const files: CopiedFiles = { a: { objectKey: 'k1', sha256: 's1' }, b: { objectKey: 'k2', sha256: 's2' } };
const digests = (given: EnvironmentStep[], copied = files, origin = 'debian') =>
  digestsOf(origin, planOf(noSetting, given).work, () => copied);

test('A digest says that a step would have the same result, and a change keeps those before it', () => {
  const before = digests(steps);
  expect(new Set(before).size).toBe(6);
  expect(digests(structuredClone(steps))).toEqual(before);
  // In another order and under other keys, these are the same files.
  expect(digests(steps, { b: { objectKey: 'k3', sha256: 's2' }, a: { objectKey: 'k1', sha256: 's1' } })).toEqual(
    before,
  );
  // What comes behind the last step that changes files.
  expect(digests(steps.slice(0, -2))).toEqual(before);
  const same = (changed: string[]) => changed.filter((digest, index) => digest === before[index]).length;
  expect(same(digests(steps, { ...files, a: { objectKey: 'k1', sha256: 'other' } }))).toBe(4);
  expect(same(digests(steps.with(1, { env: { A: 'other' } })))).toBe(1);
  expect(same(digests(steps.with(3, { run: 'other' })))).toBe(2);
  expect(same(digests(steps.with(4, { user: 'other' })))).toBe(3);
  expect(same(digests(steps, files, 'evr_1'))).toBe(0);
  // Nothing is done when root is the user again.
  expect(same(digests(steps.toSpliced(5, 0, { user: 'root' })))).toBe(4);
});

test.each([
  [{ run: 'a\nb' }, 'run a …'],
  [{ run: 'x'.repeat(300) }, `run ${'x'.repeat(196)}…`],
  [{ copy: { from: '/a', to: '/b' } }, 'copy /a to /b'],
  [{ workdir: '/a' }, 'workdir /a'],
])('The title of %j is one line', (step, title) => expect(titleOf(step)).toBe(title));

test.each([
  [{ steps: [{ env: { LD_PRELOAD: '/x.so' } }] }, 'VARIABLE_REFUSED'],
  [{ dockerfile: 'FROM debian\nENV PYTHONPATH=/x' }, 'VARIABLE_REFUSED'],
  [{ dockerfile: `FROM debian\n${'RUN true\n'.repeat(201)}` }, 'ENVIRONMENT_INVALID'],
  [{ steps: [1, 2].map((n) => ({ env: { [`A${n}`]: 'x'.repeat(20_000) } })) }, 'ENVIRONMENT_INVALID'],
  [{ steps: [{ run: 'a\0b' }] }, 'ENVIRONMENT_INVALID'],
  [{ steps: [{ run: '\ud800' }] }, 'ENVIRONMENT_INVALID'],
])('A definition that cannot be built is %#: %s', (given, code) => {
  expect(() => definitionOf(given)).toThrow(expect.objectContaining({ code }));
});
