import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ChatUser } from '../builders/chat.ts';
import { buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { beginningOf, blocksOf } from '../support/examples.ts';
import { tenantServer } from '../support/runServer.ts';

/** The examples of the pages work as they stand there: pasted one after the other, after those of the README. */

/** Why a block is not run, by a word in the block. */
const leftOut: Record<string, string> = {
  'github.com': 'needs the internet',
  'https://example.': 'needs the internet',
  tcl_01J: 'stands for a call of your own',
  K7QD: 'stands for a code of your own',
  'npm run': 'is the command line, which has tests of its own',
  'docker compose': 'needs Docker',
  'sleep 10': 'needs the programs of a desktop',
  'desktop/sessions': 'needs the programs of a desktop',
  'open-webui': 'needs Open WebUI',
  'npm start': 'is the product itself',
  'preview -H': 'needs a domain for previews',
};

const pages = [
  'apps',
  'automations',
  'chat',
  'computers',
  'databases',
  'drive',
  'environments',
  'identity',
  'secrets',
  'webhooks',
];
const isRun = (block: string) => !Object.keys(leftOut).some((words) => block.includes(words));
const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

test('Every word that leaves a block out is on a page', () => {
  const all = [...pages, 'browsers', 'desktops', 'git', 'openai', 'operations', 'tools'].flatMap((page) =>
    blocksOf(`docs/${page}.md`),
  );
  expect(Object.keys(leftOut).filter((words) => !all.some((block) => block.includes(words)))).toEqual([]);
});

describe.each(usable.slice(0, 1))('with $name', () => {
  let product: TestProduct;
  let user: ChatUser;
  let folder: string;
  beforeAll(async () => {
    product = await buildHostingProduct(await tenantServer());
    user = await product.user();
    folder = mkdtempSync(join(tmpdir(), 'atrium-examples-'));
    writeFileSync(join(folder, 'README.md'), 'Read me.\n');
  });
  afterAll(async () => {
    await product.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(pages)('The examples of docs/%s.md run without an error', async (page) => {
    const blocks = blocksOf(`docs/${page}.md`).filter(isRun);
    expect(blocks.length).toBeGreaterThan(0);
    // An answer that is not 2xx ends the script here. A person would see it.
    const strict = 'set -euo pipefail; curl() { command curl --silent --show-error --fail-with-body "$@"; }';
    const shell = spawn(
      'bash',
      ['-c', [strict, beginningOf({ url: product.url, token: user.token }), ...blocks].join('\n')],
      { cwd: folder },
    );
    const [out, err, [exitCode]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')]);
    expect({ exitCode, ...(exitCode !== 0 && { out, err }) }).toEqual({ exitCode: 0 });
    // The folder stands for the checkout of whoever pastes the blocks.
    expect(readdirSync(folder)).toEqual(['README.md']);
  });

  test('What reads one field of an answer says why there is none, and fails', async () => {
    const commands = `${beginningOf({ url: product.url, token: user.token })}
      curl -s $space/computers/status -H "$auth" | field computerId
      id=$(curl -s $space/databases -H "$auth" -H "$json" -d '{"name": ""}' | field id) || echo "failed:$id"`;
    const shell = spawn('bash', ['-c', commands], { cwd: folder });
    const [out, err] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    expect(out).toMatch(/^cmp_\w+\nfailed:\n$/);
    expect(err).toMatch(/name/);
    expect(err).not.toMatch(/undefined|\n +at /);
  });
});
