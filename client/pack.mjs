// In a checkout, src/api.ts only refers to the API's own types. A package contains a copy of them. `npm pack` and `npm
// publish` call this before and after.
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const source = join(import.meta.dirname, 'src', 'api.ts');
const kept = join(import.meta.dirname, 'src', 'api.ts.kept');

if (process.argv[2] === 'bundle') {
  copyFileSync(source, kept);
  copyFileSync(join(import.meta.dirname, '..', 'api', 'generated', 'types.gen.ts'), source);
} else {
  copyFileSync(kept, source);
  rmSync(kept);
}
