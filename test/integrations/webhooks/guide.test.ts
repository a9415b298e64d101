import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { EgressGuard } from '../../../integrations/egress/guard.ts';
import { sendWebhook } from '../../../integrations/webhooks/sendWebhook.ts';
import { choosePort } from '../../../stack/ports.ts';
import { type Received, startReceiver } from '../../builders/webhookReceiver.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { start, type TestProcess } from '../../support/processes.ts';

// What we sign is verified by the standard's own library, and by the programs of the guide as they stand there.

const page = readFileSync('docs/webhooks.md', 'utf8');
const program = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '';
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const [before, now, foreign] = [newSecret(), newSecret(), newSecret()];
const event = { type: 'turn.ended', timestamp: '2026-01-31T12:00:00.000Z', data: { turnId: 'trn_1', note: 'ä' } };
const body = JSON.stringify(event);

const send = (host: string, secrets: string[]) => {
  const guard = new EgressGuard({ allowInternal: [host] });
  const owner = { purpose: 'webhook', policy: { allow: [], deny: [] }, record: async () => undefined };
  return sendWebhook(guard, owner, { url: `http://${host}/`, id: 'whd_1', body, secrets });
};

async function receive(secrets: string[]): Promise<Received> {
  const receiver = await startReceiver();
  try {
    expect(await send(receiver.host, secrets)).toMatchObject({ answer: 204, error: null });
    return receiver.received[0] as Received;
  } finally {
    await receiver.close();
  }
}

test('the library of the standard takes it, by either secret during a rotation', async () => {
  const verify = (secret: string, { headers, body: raw }: Received) =>
    new Webhook(secret).verify(raw, headers as Record<string, string>);
  const signedByOne = await receive([now]);
  expect(verify(now, signedByOne)).toEqual(event);
  expect(() => verify(before, signedByOne)).toThrow('No matching signature');
  const signedByBoth = await receive([now, before]);
  for (const secret of [now, before]) expect(verify(secret, signedByBoth)).toEqual(event);
  expect(() => verify(foreign, signedByBoth)).toThrow('No matching signature');
});

describe('the program for Node', () => {
  const port = choosePort();
  let receiver: TestProcess;
  beforeAll(async () => {
    const folder = temporaryFolder();
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const source = program('js').replace('8000', `${await port}`);
    writeFileSync(join(folder, 'receiver.mjs'), `${source}console.log('Ready');\n`);
    const env = { WEBHOOK_SECRET: before };
    receiver = start(process.execPath, ['receiver.mjs'], { cwd: folder, env });
    await receiver.printed(/Ready/);
  });
  afterAll(async () => {
    receiver.child.kill();
    await receiver.exited;
  });

  test('takes what is signed with its secret, and nothing else', async () => {
    const host = `127.0.0.1:${await port}`;
    expect(await send(host, [now, before])).toMatchObject({ answer: 204, error: null });
    await receiver.printed(/whd_1 turn\.ended \{ turnId: 'trn_1', note: 'ä' \}/);
    expect(await send(host, [now])).toMatchObject({ answer: 401, error: 'ANSWER_NOT_2XX' });
  });
});

// Each machine that runs these tests has a Python for the sandboxes; where one has not, Node's program has been run.
const hasPython = spawnSync('python3', ['--version']).status === 0;
if (hasPython) {
  test('the program for Python takes the same', async () => {
    const { headers, body: raw } = await receive([now, before]);
    const verified = (secret: string, text = raw) => {
      const input = JSON.stringify({ secret, headers, text });
      const call = 'import sys\ngiven = json.load(sys.stdin)\n';
      const verify = 'print(verify(given["secret"], given["headers"], given["text"].encode())["data"]["turnId"])\n';
      const ran = spawnSync('python3', ['-c', program('python') + call + verify], { input, encoding: 'utf8' });
      return ran.status === 0 ? ran.stdout.trim() : ran.stderr;
    };
    for (const secret of [now, before]) expect(verified(secret)).toBe('trn_1');
    expect(verified(foreign)).toContain('ValueError: wrong signature');
    expect(verified(now, `${raw} `)).toContain('ValueError: wrong signature');
  });
}
