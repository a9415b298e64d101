import { readFileSync } from 'node:fs';

/** The blocks of commands on a page. */
export function blocksOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^```(?:sh|bash)\n(.*?)^```/gms)].map(([, block = '']) => block);
}

/** The README's block that all examples begin with, with this address and token. */
export function beginningOf({ url, token }: { url: string; token: string }): string {
  const block = blocksOf('README.md').find((each) => each.includes('export SPACE='));
  if (block === undefined) throw new Error('The README does not say what the examples begin with.');
  return block.replace(/^export URL=.*$/m, `export URL=${url}`).replace(/^export TOKEN=.*$/m, `export TOKEN=${token}`);
}
