import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeBrowserPrograms, missingBrowserPackages } from '../../stack/browsers.ts';
import { temporaryFolder } from '../support/folders.ts';

/** The environment of a machine with only these programs. Its `fc-list` finds a font for only these patterns. */
function machine(programs: string[], ...fonts: string[]) {
  const folder = join(temporaryFolder(), 'bin');
  mkdirSync(folder);
  const cases = fonts.map((pattern) => `'${pattern}') echo Found;;`).join(' ');
  for (const name of programs) {
    const script = name === 'fc-list' && fonts.length > 0 ? `case "$1" in ${cases} esac` : '';
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return { environment: { PATH: folder } };
}

const western = ['DejaVu Sans', 'Liberation Sans'];
const others = [':lang=und-zsye', ':charset=d55c'];

test('missing fonts are listed even if Chromium is installed', () => {
  const programs = ['chromium', 'fc-list'];
  expect(missingBrowserPackages(machine(programs, ...western, ...others))).toEqual([]);
  expect(missingBrowserPackages(machine(programs, ...western))).toEqual(['fonts-noto-color-emoji', 'fonts-wqy-zenhei']);
  expect(missingBrowserPackages(machine(programs))).toHaveLength(4);
  expect(missingBrowserPackages(machine(['chromium']))).toHaveLength(5);
  expect(missingBrowserPackages(machine([]))).toEqual(expect.arrayContaining(['chromium', 'fontconfig']));
});

test('doctor lists missing fonts, and reports browsers as missing only without Chromium', () => {
  expect(describeBrowserPrograms(machine(['chromium', 'fc-list'], ...western))).toEqual({
    missing: false,
    detail: expect.stringMatching(/^Chromium; without fonts .*fonts-noto-color-emoji fonts-wqy-zenhei/),
  });
  expect(describeBrowserPrograms(machine(['fc-list'], ...western, ...others))).toEqual({
    missing: true,
    detail: expect.stringContaining('apt-get install chromium)'),
  });
});
