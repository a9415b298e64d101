import { findProgram } from '../../stack/context.ts';
import { describeGit, judgeGit } from '../../stack/git.ts';

const judge = (version: string, revision?: string) =>
  judgeGit(version, revision, version, (a, b) => a.localeCompare(b, 'en', { numeric: true }) >= 0).state;

test('a vulnerable git is told from a patched one, also by the package revision of the same version', () => {
  expect(judge('2.39.5', '1:2.39.5-0+deb12u2')).toBe('off');
  expect(judge('2.39.5', '1:2.39.5-0+deb12u3')).toBe('ok');
  expect(judge('2.39.5')).toBe('off');
  expect([judge('2.43.6'), judge('2.43.7'), judge('2.47.2'), judge('2.47.3')]).toEqual(['off', 'ok', 'off', 'ok']);
  expect([judge('2.50.0'), judge('2.50.1'), judge('2.51.0'), judge('3.0.0')]).toEqual(['off', 'ok', 'ok', 'ok']);
});

test('the description of a git names the CVE and whether it is fixed', () => {
  const said = (version: string, revision?: string) =>
    judgeGit(version, revision, version, (a, b) => a.localeCompare(b, 'en', { numeric: true }) >= 0).detail;
  expect(said('2.50.1')).toBe('2.50.1; this version fixes CVE-2025-48384');
  expect(said('2.39.5', '1:2.39.5-0+deb12u3')).toBe('2.39.5; this version fixes CVE-2025-48384');
  expect(said('2.39.5', '1:2.39.5-0+deb12u2')).toMatch(/update it to .*deb12u3, which fixes CVE-2025-48384$/);
  expect(said('2.50.0')).toMatch(/cannot tell whether this version fixes CVE-2025-48384/);
});

test('a git that is too old is rejected', () => {
  expect([judge('2.34.1', '1:2.34.1-1ubuntu1.15'), judge('2.37.9'), judge('1.9.0')]).toEqual([
    'wrong',
    'wrong',
    'wrong',
  ]);
});

test("this machine's git is described with its version and package", () => {
  const { detail } = describeGit({ environment: process.env });
  if (findProgram('git', process.env) !== undefined) expect(detail).toMatch(/^\d+\.\d+/);
  if (findProgram('dpkg-query', process.env) !== undefined) expect(detail).toMatch(/package \d|missing/);
  // Programs are also searched in the folders of server programs, so this machine's git may be found in any case.
  expect(describeGit({ environment: { PATH: '/nonexistent' } }).detail).toMatch(/^\d|missing/);
});
