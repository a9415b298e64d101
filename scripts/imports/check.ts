import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { confined, type Rule, rules } from './rules.ts';

/** Source text by path from the project's root, such as `api/frame/app.ts`. */
export type Sources = Map<string, string>;

interface Import {
  from: string;
  typeOnly: boolean;
  line: number;
}

/** The project's own TypeScript that the rules speak of. */
export function readSources(root: string): Sources {
  const patterns = Object.keys(rules).map((folder) => `${folder}/**/*.ts`);
  const paths = globSync(patterns, { cwd: root }).map((path) => path.replaceAll('\\', '/'));
  return new Map(paths.sort().map((path) => [path, readFileSync(posix.join(root, path), 'utf8')]));
}

/** One line for each import and statement that breaks a rule. */
export function checkImports(sources: Sources): string[] {
  return [...sources].flatMap(([path, source]) => {
    const code = withoutComments(source);
    const rule = rules[folderOf(path)];
    if (rule === undefined) return [];
    return [...checkArrows(path, code, rule), ...checkConfined(path, code)];
  });
}

function checkArrows(path: string, code: string, rule: Rule): string[] {
  return importsOf(code).flatMap(({ from, typeOnly, line }) => {
    const fault = from.startsWith('.')
      ? faultOfFile(path, posix.join(posix.dirname(path), from), typeOnly, rule)
      : faultOfPackage(from, typeOnly, rule);
    return fault === undefined ? [] : [`${path}:${line} ${fault} (${rule.why})`];
  });
}

function faultOfFile(path: string, target: string, typeOnly: boolean, rule: Rule): string | undefined {
  const own = folderOf(path);
  const covers = (names: string[] = []) => names.includes(target) || names.includes(folderOf(target));
  if (folderOf(target) === own || covers(rule.may)) return undefined;
  if (!covers(rule.typesOf)) return `imports ${target}: ${own}/ may not`;
  // `import { type A }` still loads the module at run time: only `import type` does not.
  return typeOnly ? undefined : `imports ${target}: ${own}/ may use its types only ("import type")`;
}

function faultOfPackage(name: string, typeOnly: boolean, rule: Rule): string | undefined {
  if (rule.packages === undefined || typeOnly) return undefined;
  if (rule.packages.some((allowed) => name === allowed || name.startsWith(`${allowed}/`))) return undefined;
  return `imports the package ${name}`;
}

function checkConfined(path: string, code: string): string[] {
  return confined.flatMap(({ pattern, only, message }) => {
    const match = only(path) ? null : pattern.exec(code);
    return match === null ? [] : [`${path}:${lineAt(code, match.index)} ${message}`];
  });
}

const importPatterns = [
  // import … from '…' and export … from '…', over several lines too
  /^[ \t]*(?:import|export)\s+(?<type>type\s+(?!from\b))?[\w\s{},*$]*?\bfrom\s*['"](?<from>[^'"]+)['"]/gm,
  // import '…'
  /^[ \t]*import\s*['"](?<from>[^'"]+)['"]/gm,
  // import('…'); in a type, TypeScript takes it away, but then it can be an import type as well
  /\bimport\(\s*['"](?<from>[^'"]+)['"]\s*\)/gm,
];

function importsOf(code: string): Import[] {
  return importPatterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => ({
      from: match.groups?.from ?? '',
      typeOnly: match.groups?.type !== undefined,
      line: lineAt(code, match.index),
    })),
  );
}

/** Blanks comments out and keeps the lines, so that prose about an import is not taken for one. */
function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '));
}

function lineAt(code: string, index: number): number {
  return code.slice(0, index).split('\n').length + (/^\s*\n/.test(code.slice(index)) ? 1 : 0);
}

function folderOf(path: string): string {
  return path.split('/')[0] ?? path;
}
