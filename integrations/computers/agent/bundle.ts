import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, resolve } from 'node:path';

const importPattern = /^import\s+(?:type\s+)?(\{[^}]*\}|\w+)\s+from\s+'([^']+)';$/gm;
const exportPattern = /^export ((?:async )?(?:function\*?|class|const)) (\w+)/gm;

/**
 * A program of ours as one file of plain JavaScript, since each file, and each type in it, costs time when it starts. Its
 * files import each other by name, in no circle, and of packages only Node’s own.
 */
export function bundle(entry: string): string {
  const numbers = new Map<string, number>();
  const modules: string[] = [];
  add(entry);
  return `'use strict';\n${modules.join('\n')}`;

  /** The number of a file’s module, which stands before all that import it. */
  function add(path: string): number {
    const known = numbers.get(path);
    if (known !== undefined) return known;
    const code = stripTypeScriptTypes(readFileSync(path, 'utf8'));
    const names = [...code.matchAll(exportPattern)].map(([, , name]) => name);
    const body = code
      .replaceAll(importPattern, (_, what: string, from: string) => importOf(path, what, from))
      .replaceAll(exportPattern, '$1 $2')
      .replaceAll(/[ \t]+$/gm, '')
      .replaceAll(/\n{2,}/g, '\n');
    if (/^(import|export)\b/m.test(body))
      throw new Error(`${path} imports or exports in a way that is not understood.`);
    const number = modules.length;
    numbers.set(path, number);
    modules.push(`const module${number} = (() => {${body}return { ${names.join(', ')} };\n})();`);
    return number;
  }

  function importOf(path: string, what: string, from: string): string {
    const names = what.replaceAll(/\s+as\s+/g, ': ');
    if (from.startsWith('.')) {
      const number = add(resolve(dirname(path), from));
      return `const ${names} = module${number};`;
    }
    if (!from.startsWith('node:')) throw new Error(`A program of one file cannot import ${from}.`);
    return `const ${names} = require('${from}');`;
  }
}
