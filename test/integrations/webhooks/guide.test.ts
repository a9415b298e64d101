import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { EgressGuard } from '../../../integrations/egress/guard.ts';
import { sendWebhook } from '../../../integrations/webhooks/sendWebhook.ts';
import { choosePort } from '../../../stack/ports.ts';
import { type Received, startReceiver } from '../../builders/webhookReceiver.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { start, type TestProcess } from '../../support/processes.ts';

// Atrium's signatures are verified by the standard's own library and by the programs in the guide.

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

test("the standard's library accepts a webhook, by either secret during a rotation", async () => {
  const verify = (secret: string, { headers, body: raw }: Received) =>
    new Webhook(secret).verify(raw, headers as Record<string, string>);
  const signedByOne = await receive([now]);
  expect(verify(now, signedByOne)).toEqual(event);
  expect(() => verify(before, signedByOne)).toThrow('No matching signature');
  const signedByBoth = await receive([now, before]);
  for (const secret of [now, before]) expect(verify(secret, signedByBoth)).toEqual(event);
  expect(() => verify(foreign, signedByBoth)).toThrow('No matching signature');
});

/** Sends this text to a receiver. Returns its status line, or '' if the connection ends without an answer. */
async function answerTo(port: number, text: string, { hangsUp = false } = {}): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  // A receiver may close the connection while a body that it refuses is still being sent.
  socket.on('error', () => undefined);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    answer += chunk;
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(text, 'latin1', () => hangsUp && socket.destroy());
  await closed;
  return answer.split('\r\n')[0] ?? '';
}

const post = (headers: Record<string, string>, length = 2, content = '{}') =>
  ['POST / HTTP/1.1', 'host: localhost', 'connection: close', `content-length: ${length}`]
    .concat(Object.entries(headers).map(([name, value]) => `${name}: ${value}`))
    .concat('', content)
    .join('\r\n');

const python = 'python3';
// Machines that run these tests usually have Python. Without it, only Node's program is tested.
const hasPython = spawnSync(python, ['--version']).status === 0;
const programs = [
  { language: 'js', command: process.execPath, file: 'receiver.mjs' },
  ...(hasPython ? [{ language: 'python', command: python, file: 'receiver.py' }] : []),
];

describe.each(programs)('the program $file', ({ language, command, file }) => {
  const chosen = choosePort();
  let port: number;
  let receiver: TestProcess;
  const isUp = () => answerTo(port, post({})).then((answer) => answer.includes(' 401 '));

  beforeAll(async () => {
    port = await chosen;
    const folder = temporaryFolder();
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, file), program(language).replace('8000', `${port}`));
    const env = { PATH: process.env.PATH, PYTHONIOENCODING: 'utf-8', WEBHOOK_SECRET: before };
    receiver = start(command, [file], { cwd: folder, env });
    while (!(await isUp())) expect(receiver.child.exitCode).toBeNull();
  });
  afterAll(async () => {
    receiver.child.kill();
    await receiver.exited;
  });

  test('accepts only webhooks that are signed with its secret', async () => {
    const host = `127.0.0.1:${port}`;
    expect(await send(host, [now, before])).toMatchObject({ answer: 204, error: null });
    await receiver.printed(/whd_1 turn\.ended \{ ?'?turnId'?: 'trn_1', '?note'?: 'ä' ?\}/);
    expect(await send(host, [now])).toMatchObject({ answer: 401, error: 'ANSWER_NOT_2XX' });
  });

  test('answers 401 to missing or wrong headers', async () => {
    const id = { 'webhook-id': 'whd_1' };
    const sent = { 'webhook-timestamp': `${Math.floor(Date.now() / 1_000)}` };
    const signature = { 'webhook-signature': 'v1,\xe4\xf6 v1,\xff' };
    for (const headers of [
      {},
      { ...sent, ...signature },
      { ...id, ...signature },
      { ...id, ...sent },
      { ...id, ...sent, ...signature },
      { ...id, ...signature, 'webhook-timestamp': 'now' },
      { ...id, ...signature, 'webhook-timestamp': '9'.repeat(400) },
    ]) {
      expect(await answerTo(port, post(headers))).toContain(' 401 ');
    }
  });

  test('answers 413 to a body over 1 MiB, and survives a truncated one', async () => {
    const bytes = 1_048_577;
    // Python's program decides by the length, and closes without reading the body.
    const content = language === 'js' ? 'x'.repeat(bytes) : '';
    expect(await answerTo(port, post({}, bytes, content))).toContain(' 413 ');
    await answerTo(port, post({}, 1_000), { hangsUp: true });
    if (language === 'js') await receiver.printed(/aborted/);
    expect(await isUp()).toBe(true);
    expect(receiver.child.exitCode).toBeNull();
  });
});

if (hasPython) {
  test("verify in Python's program takes a dict, and raises only ValueError", async () => {
    const { headers, body: raw } = await receive([now, before]);
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'receiver.py'), program('python'));
    const verified = (secret: string, change: { headers?: object; text?: string } = {}) => {
      const input = JSON.stringify({ secret, headers, text: raw, ...change });
      const call = 'import json, sys\nfrom receiver import verify\ngiven = json.load(sys.stdin)\n';
      const verify = 'print(verify(given["secret"], given["headers"], given["text"].encode())["data"]["turnId"])\n';
      const ran = spawnSync(python, ['-c', call + verify], { cwd: folder, input, encoding: 'utf8' });
      return ran.status === 0 ? ran.stdout.trim() : ran.stderr;
    };
    for (const secret of [now, before]) expect(verified(secret)).toBe('trn_1');
    expect(verified(foreign)).toContain('ValueError: wrong signature');
    expect(verified(now, { text: `${raw} ` })).toContain('ValueError: wrong signature');
    expect(verified(now, { headers: {} })).toContain('ValueError: ');
    expect(verified(now, { headers: { ...headers, 'webhook-signature': 'v1,ä' } })).toContain('ValueError: wrong');
    expect(verified(now, { headers: { ...headers, 'webhook-timestamp': '9'.repeat(400) } })).toContain(
      'ValueError: too',
    );
  });
}
