import { createHash, randomBytes } from 'node:crypto';
import { appsOf, manifestOf, webhookManifest } from '../../builders/app.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { drivers } from '../../integrations/computers/drivers.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: deliveries that run', () => {
  let product: TestProduct;
  beforeAll(async () => {
    product = await buildHostingProduct({});
  });
  afterAll(() => product.close());

  test('The process gets the method, the query, the headers without secrets, and the unchanged body', async () => {
    const user = await buildChatUser(product);
    const apps = appsOf(product, user);
    const computer = await buildComputer(product, user);
    const command = `cat > ~/body; sha256sum < ~/body; echo "$ATRIUM_WEBHOOK_METHOD $ATRIUM_WEBHOOK_QUERY $ATRIUM_WEBHOOK_AUTH $ATRIUM_WEBHOOK_ID"; echo "$ATRIUM_WEBHOOK_HEADERS"`;
    const id = await apps.app(webhookManifest(command));
    const secret = await apps.secret(id);
    const body = randomBytes(1_048_576);
    const headers = {
      'content-type': 'application/x-anything',
      'x-note': 'b',
      cookie: 'session=1',
      'x-hub-signature-256': 'sha256=1',
      'x-gitlab-token': 't',
      'x-api-key': 'k',
      'x-functions-key': 'k',
      'ocp-apim-subscription-key': 'k',
      'x-access-key': 'k',
      'x-event-key': 'repo:push',
    };
    const sent = await apps.deliver(id, { secret, id: 'msg_1', method: 'PUT', query: '?a=1&b=%20', body, headers });
    const run = await apps.ended(sent.body.runId);
    expect(run).toMatchObject({ status: 'succeeded', trigger: 'webhook', startedBy: user.id });
    const [hash, line, json = ''] = (run.output ?? '').split('\n');
    expect(hash).toContain(createHash('sha256').update(body).digest('hex'));
    expect(line).toBe('PUT a=1&b=%20 signature msg_1');
    const shown = JSON.parse(json) as Record<string, string>;
    expect(shown).toMatchObject({ 'content-type': 'application/x-anything', 'x-note': 'b', 'webhook-id': 'msg_1' });
    expect(shown['x-event-key']).toBe('repo:push');
    const secrets = [
      'authorization',
      'cookie',
      'x-hub-signature-256',
      'x-gitlab-token',
      'x-api-key',
      'x-functions-key',
      'ocp-apim-subscription-key',
      'x-access-key',
      'webhook-signature',
    ];
    expect(Object.keys(shown).filter((name) => secrets.includes(name))).toEqual([]);
    expect((await computer.exec('wc -c < body')).stdout).toBe('1048576\n');

    // A waiting run uses the manifest of the time of its delivery. A replay uses the current manifest.
    await computer.exec('touch hold');
    await apps.put(id, 'atrium.yaml', webhookManifest('while [ -e ~/hold ]; do sleep 0.1; done; cat'));
    const first = await apps.deliver(id, { secret, body: 'one' });
    const second = await apps.deliver(id, { secret, body: 'two' });
    await apps.put(id, 'atrium.yaml', webhookManifest('echo changed; cat'));
    await computer.exec('rm hold');
    expect((await apps.ended(first.body.runId)).output).toBe('one');
    expect((await apps.ended(second.body.runId)).output).toBe('two');
    const [delivery] = (await apps.deliveries(id)).body.data;
    const replayed = await apps.replay(delivery?.id ?? '');
    expect(await apps.ended(replayed.body.runId)).toMatchObject({ output: 'changed\ntwo', trigger: 'replay' });
    expect((await computer.exec('cat body | wc -c')).stdout).toBe('1048576\n');
    expect(product.process.log()).not.toContain('session=1');
  });

  test('A run reports how its process ended, and its delivery has the same status', async () => {
    const user = await buildChatUser(product);
    const apps = appsOf(product, user);
    await buildComputer(product, user);
    const statusOf = async (command: string, more: object = {}) => {
      const id = await apps.app(webhookManifest(command, { auth: 'none', ...more }));
      const { runId } = (await apps.deliver(id, { body: 'x' })).body;
      const { status, signal, error } = await apps.ended(runId);
      const [delivery] = (await apps.deliveries(id)).body.data;
      expect(delivery?.status).toBe(status);
      return [status, signal, error?.code];
    };
    expect(await statusOf('exit 3')).toEqual(['failed', null, 'RUN_FAILED']);
    expect(await statusOf('kill -TERM $$')).toEqual(['failed', 'SIGTERM', 'RUN_KILLED']);
    expect(await statusOf('sleep 1000', { timeout: 1 })).toMatchObject([
      'timed_out',
      expect.any(String),
      'RUN_TIMED_OUT',
    ]);
    // The process does not read its input, or leaves background processes that do not end.
    expect(await statusOf('true')).toEqual(['succeeded', null, undefined]);
    expect(await statusOf('(sleep 1000 &) ; for i in 1 2 3 4; do sleep 1000 & done')).toEqual([
      'succeeded',
      null,
      undefined,
    ]);
    const id = await apps.app(manifestOf('cat; echo $ATRIUM_WEBHOOK_METHOD'));
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: '\n' });
  });
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
