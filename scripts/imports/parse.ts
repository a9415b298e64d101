interface Import {
  from: string;
  typeOnly: boolean;
  line: number;
}

const importPatterns = [
  // import … from '…' and export … from '…', over several lines too
  /^[ \t]*(?:import|export)\s+(?<type>type\s+(?!from\b))?[\w\s{},*$]*?\bfrom\s*['"](?<from>[^'"]+)['"]/gm,
  // import '…'
  /^[ \t]*import\s*['"](?<from>[^'"]+)['"]/gm,
  // import('…'); within a type, TypeScript removes it, but then it could be an import type as well
  /\bimport\(\s*['"](?<from>[^'"]+)['"]\s*\)/gm,
];

/** The imports and re-exports of a file. */
export function importsOf(code: string): Import[] {
  return importPatterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => ({
      from: match.groups?.from ?? '',
      typeOnly: match.groups?.type !== undefined,
      line: lineAt(code, match.index),
    })),
  );
}

/** Blanks out comments but keeps the lines, so that text about an import is not taken for one. */
export function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ' '));
}

export function lineAt(code: string, index: number): number {
  return code.slice(0, index).split('\n').length + (/^\s*\n/.test(code.slice(index)) ? 1 : 0);
}
