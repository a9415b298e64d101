import { type Browser, chromium, type Page } from 'playwright-core';
import type { operations } from '../../../api/generated/types.gen.ts';
import { appsOf } from '../../builders/app.ts';
import { asUser, buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { getChromium } from '../../support/chromium.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';
import { freePort } from '../identity/support.ts';

const full = inFull('apps');

declare const location: { origin: string };

type Preview = operations['createPreview']['responses'][201]['content']['application/json'];

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

/** Serves a page with the number of its start, and echoes each message of a WebSocket. */
const server = `
use IO::Socket::INET; use Digest::SHA 'sha1_base64';
$| = 1; $SIG{CHLD} = 'IGNORE';
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 50, ReuseAddr => 1)
  or die "cannot listen: $!";
print "serving $ENV{ATRIUM_ATTEMPT}\\n";
while (my $client = $listener->accept) {
  next if fork;
  my ($path, $key);
  while (my $line = <$client>) {
    $line =~ s/\\r\\n//; last if $line eq '';
    $path //= (split ' ', $line)[1];
    $key = $1 if $line =~ /^sec-websocket-key: (.*)/i;
  }
  if ($key) {
    my $accept = sha1_base64($key . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11') . '=';
    print $client "HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: $accept\\r\\n\\r\\n";
    while (read($client, my $head, 2) == 2) {
      my $length = ord(substr $head, 1) & 127;
      read($client, my $mask, 4); read($client, my $data, $length);
      last if (ord($head) & 15) == 8;
      my $text = 'echo ' . ($data ^ substr($mask x ($length + 1), 0, $length));
      print $client chr(0x81) . chr(length $text) . $text;
    }
  } else {
    my $body = "<h1>start $ENV{ATRIUM_ATTEMPT}</h1>";
    print $client "HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\nContent-Length: " . length($body) . "\\r\\nConnection: close\\r\\n\\r\\n$body";
    close $client;
    kill 'KILL', getppid if $path eq '/die';
  }
  exit;
}
`;

const manifest = JSON.stringify({
  name: 'Site',
  components: [
    { name: 'site', kind: 'web', command: 'exec perl server.pl', port: 8000, default: true },
    { name: 'broken', kind: 'web', command: 'echo "no such module" >&2; exit 3', port: 8001 },
    { name: 'leaky', kind: 'web', command: 'echo "got $API_TOKEN"; exit 3', port: 8002, secrets: ['API_TOKEN'] },
  ],
});

describe.each(usable.slice(0, 1))('$name: previews of web components', () => {
  let product: TestProduct;
  let browser: Browser;
  let user: ChatUser;
  let computer: TestComputer;
  let itemId: string;
  let path: string;
  beforeAll(async () => {
    const executablePath = await getChromium();
    // A page may open a WebSocket to its own origin alone, port and all, which is in the product's settings.
    const port = await freePort();
    const publicUrl = `http://localhost:${port}`;
    product = await buildHostingProduct({ ATRIUM_PORT: String(port), ATRIUM_PUBLIC_URL: publicUrl });
    user = await buildChatUser(product);
    computer = await buildComputer(product, user);
    itemId = await appsOf(product, user).app(manifest, { 'server.pl': server });
    path = `/api/apps/${itemId}/preview`;
    // As root, Chromium refuses to use its own sandbox. It only opens pages of this test.
    const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
    browser = await chromium.launch({ executablePath, args });
  }, 300_000);
  // A link that a failed test has left would keep its process for the next one.
  afterEach(async () => {
    for (const left of await list()) await revoke(left);
  });
  afterAll(async () => {
    await browser?.close();
    await product?.close();
  });

  async function preview(body: object = {}, as = user): Promise<{ status: number; body: Preview & { code?: string } }> {
    const response = await as.fetch(path, { method: 'POST', body: { component: 'site', ...body } });
    return { status: response.status, body: (await response.json()) as Preview };
  }
  const revoke = ({ id }: Preview, as = user) => as.fetch(`${path}/${id}`, { method: 'DELETE' });
  const list = async () => (await user.get<{ data: Preview[] }>(path)).data;
  async function open({ url }: Preview): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(url);
    return page;
  }
  const titleOf = (page: Page) => page.textContent('h1');
  const runOf = (runId: string) =>
    appsOf(product, user)
      .getRun(runId)
      .then(({ body }) => body);

  test('Each caller gets a preview link of its own to one process, which ends with the last link', async () => {
    const made = await Promise.all(Array.from({ length: 4 }, () => preview()));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    const previews = made.map(({ body }) => body);
    const { runId } = previews[0] as Preview;
    expect(new Set(previews.map((one) => one.runId))).toEqual(new Set([runId]));
    expect(new Set(previews.map(({ origin }) => origin)).size).toBe(4);
    expect((await list()).map(({ id }) => id).sort()).toEqual(previews.map(({ id }) => id).sort());
    const [first, second, ...others] = previews as [Preview, Preview, ...Preview[]];
    const page = await open(first);
    expect(await titleOf(page)).toBe('start 1');
    const echo = await page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const socket = new WebSocket(location.origin.replace('http', 'ws'));
          socket.onopen = () => socket.send('hello');
          socket.onmessage = ({ data }) => resolve(data);
          socket.onerror = () => reject(new Error('The WebSocket failed.'));
        }),
    );
    expect(echo).toBe('echo hello');

    // A preview is a run like others, with a trigger of its own.
    expect(await runOf(runId)).toMatchObject({ status: 'running', trigger: 'preview', component: 'site', attempt: 1 });
    // Strangers get 404, and viewers 403.
    const stranger = await buildChatUser(product);
    expect([(await preview({}, stranger)).status, (await revoke(first, stranger)).status]).toEqual([404, 404]);
    const viewer = await buildChatUser(product);
    await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
    expect([(await preview({}, viewer)).status, (await revoke(first, viewer)).status]).toEqual([403, 403]);

    // The preview outlives the API process that started it.
    await product.process.kill('SIGKILL');
    await product.restart();
    await waitFor('the page', async () => {
      await page.goto(`${first.origin}/`);
      return (await titleOf(page)) === 'start 1';
    });

    // The server dies and is started again.
    await page.goto(`${first.origin}/die`);
    await waitFor('the next start of the server', async () => {
      await page.goto(`${first.origin}/`).catch(() => undefined);
      return (await page.textContent('body'))?.includes('start 2');
    });
    expect((await runOf(runId)).attempt).toBe(2);
    const next = (await preview()).body;
    expect(next.runId).toBe(runId);

    // A revoked link is closed, and the others still work.
    expect((await revoke(first)).status).toBe(204);
    expect((await revoke(first)).status).toBe(204);
    expect((await page.goto(`${first.origin}/`))?.status()).toBe(410);
    for (const other of [...others, next]) await revoke(other);
    const last = await open(second);
    expect(await titleOf(last)).toBe('start 2');
    expect((await runOf(runId)).status).toBe('running');
    await revoke(second);
    expect(await appsOf(product, user).ended(runId)).toMatchObject({ status: 'cancelled', error: null });
    expect(await list()).toEqual([]);
    expect((await computer.exec('ps ax | grep -c "[s]erver.pl"')).stdout).toBe('0\n');
  }, 240_000);

  full.test('A preview ends when its only link expires', async () => {
    const { body } = await preview({ ttlSeconds: 10 });
    const page = await open(body);
    expect(await titleOf(page)).toBe('start 1');
    expect((await appsOf(product, user).ended(body.runId)).status).toBe('cancelled');
    expect((await page.goto(`${body.origin}/`))?.status()).toBe(410);
  });

  test('Cancelling the run of a preview closes its links', async () => {
    const { body } = await preview();
    const page = await open(body);
    expect(await titleOf(page)).toBe('start 1');
    await appsOf(product, user).cancel(body.runId);
    await appsOf(product, user).ended(body.runId);
    expect((await page.goto(`${body.origin}/`))?.status()).toBe(410);
    expect(await list()).toEqual([]);
  });

  test('A component that does not serve gets 502 with its output, and leaves nothing running', async () => {
    const broken = await preview({ component: 'broken' });
    expect(broken).toMatchObject({ status: 502, body: { code: 'PREVIEW_ENDED' } });
    expect(JSON.stringify(broken.body)).toContain('no such module');
    expect(await list()).toEqual([]);
    const [run] = (await appsOf(product, user).runs(itemId)).body.data;
    expect((await appsOf(product, user).ended(run?.id ?? '')).status).toBe('cancelled');
    expect(await preview({ component: 'none' })).toMatchObject({
      status: 409,
      body: { code: 'APP_COMPONENT_UNKNOWN' },
    });
    expect(await appsOf(product, user).run(itemId, { component: 'site' })).toMatchObject({ status: 409 });
  });

  test('A key needs every scope that the preview uses, and secrets in the output are masked', async () => {
    const value = 'hunter2-hunter2-hunter2';
    await user.fetch(`/api/spaces/${user.spaceId}/secrets/API_TOKEN`, { method: 'PUT', body: { value } });
    const keyWith = async (...scopes: string[]) => {
      const { key } = await product.identity.keys.create(user.id, { name: 'key', scopes });
      return asUser(product, { ...user, token: key });
    };
    const shown = await keyWith('apps:write', 'computers:write');
    expect((await preview({}, await keyWith('apps:write'))).body.code).toBe('INSUFFICIENT_SCOPE');
    expect((await preview({ component: 'leaky' }, shown)).body.code).toBe('INSUFFICIENT_SCOPE');
    const made = await preview({}, shown);
    expect(made.status).toBe(201);
    await revoke(made.body);
    await appsOf(product, user).ended(made.body.runId);

    const leaky = await preview({ component: 'leaky' });
    expect(leaky).toMatchObject({ status: 502, body: { code: 'PREVIEW_ENDED' } });
    expect(JSON.stringify(leaky.body)).toContain('got ***');
    expect(JSON.stringify(leaky.body)).not.toContain(value);
  });
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
