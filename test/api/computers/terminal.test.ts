import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { asUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildUser } from '../../builders/identity.ts';
import type { TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let computer: TestComputer;
beforeAll(async () => {
  product = await buildHostingProduct();
  computer = await buildComputer(product);
});
afterAll(() => product.close());

type Message = { type: string; [field: string]: unknown };

interface Client {
  socket: WebSocket;
  /** The JSON messages, and all output since the connection. */
  messages: Message[];
  output(): string;
  say(message: object): void;
  until(text: string): Promise<unknown>;
  closed: Promise<number>;
}

function connect(query: string, from: TestComputer = computer): Client {
  const url = `${product.url.replace('http', 'ws')}${from.path}/terminal?${query}`;
  const socket = new WebSocket(url, ['atrium', `bearer.${from.user.token}`]);
  const messages: Message[] = [];
  const bytes: Buffer[] = [];
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) bytes.push(data);
    else messages.push(JSON.parse(data.toString()) as Message);
  });
  const output = () => Buffer.concat(bytes).toString('utf8');
  return {
    socket,
    messages,
    output,
    say: (message) => socket.send(JSON.stringify(message)),
    until: (text) => waitFor(text, async () => output().includes(text)),
    closed: once(socket, 'close').then(([code]) => code as number),
  };
}

const has = (client: Client, type: string) =>
  waitFor(type, async () => client.messages.find((message) => message.type === type));

test('A shell is started, takes each input once, has a size, and reports its end', async () => {
  const client = connect('processId=shell&writer=me&cols=90&rows=20');
  await has(client, 'screen');
  expect(client.messages[0]).toMatchObject({ type: 'attached', processId: 'shell', writer: 'me', cols: 90, rows: 20 });
  client.say({ type: 'input', seq: 1, text: 'stty size; echo é€ >> typed\r' });
  await client.until('20 90');
  client.say({ type: 'input', seq: 1, text: 'stty size; echo é€ >> typed\r' });
  client.say({ type: 'resize', cols: 100, rows: 30 });
  client.say({ type: 'input', seq: 2, text: 'stty size; cat typed; echo "<$GIT_COMMITTER_EMAIL>"\r' });
  await client.until('30 100');
  // Commits in a terminal are made by the user who has opened it.
  await client.until(`<${computer.user.email}>`);
  client.say({ type: 'input', seq: 9, text: 'x' });
  expect(await has(client, 'problem')).toMatchObject({ code: 'INPUT_OUT_OF_ORDER', seq: 9 });
  client.socket.send('none');
  await waitFor('the second refusal', async () => client.messages.some(({ code }) => code === 'MESSAGE_INVALID'));
  expect((await computer.exec('cat typed')).stdout).toBe('é€\n');
  client.say({ type: 'input', seq: 3, text: 'exit 3\r' });
  expect(await client.closed).toBe(1000);
  expect(client.messages.at(-1)).toMatchObject({ type: 'exit', state: 'exited', exitCode: 3 });
});

test('Two clients share a terminal, and a reconnect goes on at its position or shows the screen', async () => {
  const [one, two] = [connect('processId=shared'), connect('processId=shared')];
  await Promise.all([has(one, 'screen'), has(two, 'screen')]);
  one.say({ type: 'input', seq: 1, text: 'echo from-$((40+1))\r' });
  await Promise.all([one.until('from-41'), two.until('from-41')]);
  const screen = await has(two, 'screen');
  const position = Number(screen?.position) + Buffer.byteLength(two.output());
  two.socket.terminate();
  one.say({ type: 'input', seq: 2, text: 'echo from-$((40+2))\r' });
  await one.until('from-42');
  const again = connect(`processId=shared&after=${position}`);
  await again.until('from-42');
  expect(again.output()).not.toContain('from-41');
  expect(await has(again, 'position')).toMatchObject({ position });
  const fresh = connect('processId=shared');
  expect((await has(fresh, 'screen'))?.data).toContain('from-42');
  one.say({ type: 'signal', signal: 'SIGKILL' });
  expect(await one.closed).toBe(1000);
  await Promise.all([again.closed, fresh.closed]);
});

test('A caller without the role is refused before the terminal opens, and one who loses the role is cut', async () => {
  const refused = async (query: string, from: TestComputer) => {
    const { socket, closed } = connect(query, from);
    closed.catch(() => undefined);
    socket.on('error', () => undefined);
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    response.destroy();
    return response.statusCode;
  };
  const { user, token } = await buildUser(product.identity);
  const { spaceId } = computer.user;
  const as = { id: user.id, email: user.email, token, spaceId };
  const guest = computerOf(asUser(product, as), computer.id, spaceId);
  expect(await refused('processId=guest', guest)).toBe(404);
  await product.identity.members.add(spaceId, user.email, 'viewer');
  await waitFor('the role of a viewer', async () => (await refused('processId=guest', guest)) === 403);
  await product.identity.members.changeRole(spaceId, user.id, 'editor');
  expect(await refused('processId=../up', computer)).toBe(400);
  await computer.exec('true', { processId: 'plain' });
  expect(await refused('processId=plain', computer)).toBe(409);
  const runs = () => guest.fetch('/exec', { method: 'POST', body: { command: 'true' } });
  await waitFor('the role of an editor', async () => (await runs()).status === 200);
  const client = connect('processId=guest', guest);
  await has(client, 'screen');
  await product.identity.members.remove(spaceId, user.id);
  expect(await client.closed).toBe(4403);
});
