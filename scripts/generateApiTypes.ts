import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readDocument } from '../api/frame/contractDocument.ts';

/**
 * Writes api/generated/types.gen.ts from the contract in api/contract/. The generator is a package of its own,
 * tools/api-types, since it needs another TypeScript. It is installed at the first use. The contract's hash goes into
 * the header, so that a test can find stale types without the generator.
 */
const root = path.resolve(import.meta.dirname, '..');
const tools = path.join(root, 'tools', 'api-types');
const generator = path.join(tools, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
const output = path.join(root, 'api', 'generated', 'types.gen.ts');

if (!existsSync(generator)) {
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: tools, stdio: 'inherit' });
}
const { document, hash } = readDocument();
const folder = mkdtempSync(path.join(tmpdir(), 'atrium-contract-'));
const bundle = path.join(folder, 'openapi.json');
writeFileSync(bundle, JSON.stringify(document));
execFileSync(
  process.execPath,
  [generator, bundle, '--output', output, '--default-non-nullable', 'false', '--empty-objects-unknown'],
  {
    cwd: tools,
    stdio: ['ignore', 'ignore', 'inherit'],
  },
);
rmSync(folder, { recursive: true });
const header = `// Generated from api/contract/ by "npm run contract". Do not edit.\n// Contract: sha256 ${hash}\n\n`;
writeFileSync(output, header + readFileSync(output, 'utf8'));
console.log(`Wrote ${path.relative(root, output)}.`);
