import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes api/types.gen.ts from api/openapi.yaml. The generator lives in a package of its own, tools/api-types, since it
 * needs another TypeScript; it is installed when it is first needed. The contract's hash goes into the header, so that a test
 * finds stale types without the generator.
 */
const root = path.resolve(import.meta.dirname, '..');
const tools = path.join(root, 'tools', 'api-types');
const generator = path.join(tools, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
const contract = path.join(root, 'api', 'openapi.yaml');
const output = path.join(root, 'api', 'types.gen.ts');

if (!existsSync(generator)) {
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: tools, stdio: 'inherit' });
}
execFileSync(process.execPath, [generator, contract, '--output', output, '--default-non-nullable', 'false'], {
  cwd: tools,
  stdio: ['ignore', 'ignore', 'inherit'],
});
const hash = createHash('sha256').update(readFileSync(contract)).digest('hex');
const header = `// Generated from api/openapi.yaml by "npm run contract". Do not edit.\n// Contract: sha256 ${hash}\n\n`;
const types = header + readFileSync(output, 'utf8');
writeFileSync(output, types);
// The client is a package of its own, and has a copy.
writeFileSync(path.join(root, 'client', 'src', 'api.gen.ts'), types);
console.log(`Wrote ${path.relative(root, output)}.`);
