import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, resolve } from 'node:path';

const importPattern = /^import\s+(?:type\s+)?(\{[^}]*\}|\w+)\s+from\s+'([^']+)';$/gm;
const exportPattern = /^export ((?:async )?(?:function\*?|class|const)) (\w+)/gm;

/** A program as one file, what it was made of, and the packages that must lie beside it under these names. */
export interface BundledProgram {
  code: string;
  sources: string[];
  packages: { name: string; file: string }[];
}

/**
 * A program of ours as one file of plain JavaScript, since each file, and each type in it, costs time and memory when it
 * starts. Its files import each other by name, in no circle. A package that is not Node’s own is loaded when something of
 * it is first used: most programs that run never come to that.
 */
export function bundle(entry: string): BundledProgram {
  const numbers = new Map<string, number>();
  const modules: string[] = [];
  const packages = new Map<string, string>();
  add(entry);
  return {
    code: `'use strict';\n${lazily}\n${modules.join('\n')}`,
    sources: [...numbers.keys()],
    packages: [...packages].map(([name, file]) => ({ name, file })),
  };

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
    if (!from.startsWith('node:')) return lazyImportOf(what, from);
    return `const ${names} = require('${from}');`;
  }

  /** The default is the package itself, as it is of one that Node requires. */
  function lazyImportOf(what: string, name: string): string {
    const file = `${name.replaceAll(/[^A-Za-z0-9]+/g, '-').replace(/^-/, '')}.cjs`;
    packages.set(name, file);
    if (!what.startsWith('{')) return `const ${what} = lazily(() => require('./${file}'));`;
    const names = what
      .replaceAll(/[{}\s]/g, '')
      .split(',')
      .filter(Boolean);
    return names.map((each) => `const ${each} = lazily(() => require('./${file}').${each});`).join(' ');
  }
}

/** Stands for what is loaded when it is first looked at, called or constructed. */
const lazily = `const lazily = (load) => new Proxy(function () {}, {
  get: (_, name) => load()[name],
  apply: (_, self, given) => Reflect.apply(load(), self, given),
  construct: (_, given) => Reflect.construct(load(), given),
});`;
