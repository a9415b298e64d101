import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, resolve } from 'node:path';

const importPattern = /^import\s+(?:type\s+)?(\{[^}]*\}|\w+)\s+from\s+'([^']+)';$/gm;
const exportPattern = /^export ((?:async )?(?:function\*?|class|const)) (\w+)/gm;

/**
 * A program bundled into one file, its source files, and the packages that must lie beside it under these file names.
 */
export interface BundledProgram {
  code: string;
  sources: string[];
  packages: { name: string; file: string }[];
}

/**
 * Bundles a program into one file of plain JavaScript, because each file and each type costs time and memory at start.
 * Its files must import each other by name, without cycles. A package is loaded on first use: most runs never need it.
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

  /** Adds a file's module before all modules that import it, and returns its number. */
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

  /** A default import is the package itself, as with `require`. */
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

/** A proxy that loads its target at the first access, call or construction. */
const lazily = `const lazily = (load) => new Proxy(function () {}, {
  get: (_, name) => load()[name],
  apply: (_, self, given) => Reflect.apply(load(), self, given),
  construct: (_, given) => Reflect.construct(load(), given),
});`;

// Run as a program, this prints the bundle of its argument as JSON. A host runs it in another process, because Node
// warns that type stripping is experimental, which would confuse the operator.
if (import.meta.main) process.stdout.write(JSON.stringify(bundle(process.argv[2] ?? '')));
