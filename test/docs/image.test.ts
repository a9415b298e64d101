import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const root = process.cwd();
const dockerfile = readFileSync('Dockerfile', 'utf8');
const patterns = readFileSync('.dockerignore', 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

/** As Docker decides: by the last pattern that matches the path, or a folder above it. */
function isInContext(path: string): boolean {
  const above = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
  let isIn = true;
  for (const pattern of patterns) {
    const matches = regExpOf(pattern.replace(/^!/, ''));
    if (above.some((each) => matches.test(each))) isIn = pattern.startsWith('!');
  }
  return isIn;
}

// `*` matches anything within a name, also a leading dot. `**/` matches any folders, or none.
function regExpOf(glob: string): RegExp {
  const parts = glob.split(/(\*\*\/|\*)/).map((part) => {
    if (part === '**/') return '(?:.*/)?';
    return part === '*' ? '[^/]*' : part.replaceAll('.', '\\.');
  });
  return new RegExp(`^${parts.join('')}$`);
}

/** Every file of the project that the program loads from its entry: by `import`, or by a URL beside the file. */
function loadedFrom(entry: string): Set<string> {
  const seen = new Set<string>();
  const open = [join(root, entry)];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (!statSync(file).isFile() || !/\.m?[jt]s$/.test(file)) continue;
    const text = readFileSync(file, 'utf8').replace(/^\s*(import|export) type [\s\S]*?;$/gm, '');
    const named = [...text.matchAll(/(?:from|import|import\(|new URL\()\s*'(\.[^']*)'/g)].map(([, path = '']) => path);
    for (const path of named) {
      const found = join(dirname(file), path);
      if (existsSync(found)) open.push(found);
    }
  }
  // A file may name the root, to run something there.
  return new Set([...seen].map((file) => relative(root, file)).filter((file) => file !== ''));
}

test('The image is built from a list of files that exist', () => {
  expect(patterns[0]).toBe('*');
  for (const pattern of patterns.filter((each) => each.startsWith('!')))
    expect(existsSync(pattern.slice(1))).toBe(true);
});

test.each([
  '.env',
  '.env.production',
  'api/.env',
  'config/master.key',
  'stack/tls/server.pem',
  '.atrium/master.key',
  '.git/config',
  'node_modules/express/package.json',
  'test/api/chat.test.ts',
  'docker-compose.yml',
  'backup.sql',
  'id_ed25519',
])('%s is in no layer', (path) => expect(isInContext(path)).toBe(false));

test('All files that the Dockerfile copies, and that the program loads, are in the context', () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = '']) =>
    sources.split(' '),
  );
  expect(copied).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', '.npmrc', '.']));
  expect(copied.filter((source) => source !== '.' && !isInContext(source))).toEqual([]);
  const loaded = loadedFrom('bin/atrium.ts');
  // The search finds files that are loaded late, and by a URL.
  expect([...loaded].filter((file) => /^workflows\/.*runChatTurn\.ts$/.test(file))).not.toEqual([]);
  expect(loaded).toContain('integrations/readers/program.ts');
  expect([...loaded].filter((file) => !isInContext(file))).toEqual([]);
});

test('Each folder of the project is in the image, or is no part of a production process', () => {
  const apart = new Set(['bench', 'client', 'docs', 'scripts', 'test', 'tools', 'coverage', 'node_modules']);
  const folders = readdirSync('.', { withFileTypes: true }).filter(
    (each) => each.isDirectory() && !each.name.startsWith('.'),
  );
  expect(folders.map(({ name }) => name).filter((name) => !apart.has(name) && !isInContext(name))).toEqual([]);
});

test('Git ignores settings and keys, but not the example of the settings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-ignored-'));
  try {
    copyFileSync('.gitignore', join(folder, '.gitignore'));
    execFileSync('git', ['init', '--quiet', folder]);
    const names = [
      '.env',
      '.env.local',
      'deploy/.env',
      'master.key',
      'tls/server.pem',
      '.atrium/master.key',
      '.env.example',
    ];
    const ignored = execFileSync('git', ['check-ignore', ...names], { cwd: folder, encoding: 'utf8' });
    expect(ignored.trim().split('\n')).toEqual(names.slice(0, -1));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
