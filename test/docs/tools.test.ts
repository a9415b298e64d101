import { readFileSync } from 'node:fs';
import { browserTools } from '../../activities/tools/browsers/index.ts';
import { desktopTools } from '../../activities/tools/desktops/index.ts';

/** Stands for any dependency of a tool, since these tests only read the descriptions. */
const nothing = {} as never;
const docs = readFileSync(new URL('../../docs/tools.md', import.meta.url), 'utf8').split('\n');

/** The row about this tool alone, in the tables of arguments. */
function rowOf(name: string): string {
  return docs.findLast((line) => new RegExp(`^\\| \`${name}\` +\\|`).test(line)) ?? '';
}

test.each([
  ['browsers', browserTools(nothing), ['sessionId']],
  ['desktops', desktopTools(nothing), []],
])('docs/tools.md has each argument of the tools for %s', (_area, tools, said) => {
  for (const { name, inputSchema } of tools) {
    const { properties = {} } = inputSchema as { properties?: object };
    const told = [...rowOf(name).matchAll(/`(\w+)`/g)].map(([, word]) => word);
    expect([name, ...told, ...said]).toEqual(expect.arrayContaining([name, ...Object.keys(properties)]));
  }
});
