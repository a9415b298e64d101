import type { Duplex } from 'node:stream';
import { temporaryFolder } from '../../support/folders.ts';
import { agentIn, type HeldComputer, heldComputer, outputOf } from '../../support/holder.ts';

let computer: HeldComputer;

beforeAll(async () => {
  computer = await heldComputer(await agentIn(temporaryFolder()));
});

afterAll(() => computer.stop());

it('port visitors, log readers and the host have separate slots for connections to a holder', async () => {
  const { client } = computer;
  const program = `require('node:net').createServer(() => {}).listen(8000, () => console.log('ready'))`;
  await client.startProcess({ processId: 'prc_server', command: ['/opt/node', '-e', program] });
  for await (const _ of client.output('prc_server', { follow: true })) break;
  const visits: Duplex[] = [];
  const visit = async () => void visits.push(await client.dialPort(8000));
  let refusal: unknown;
  while (refusal === undefined && visits.length < 600) await visit().catch((error: unknown) => (refusal = error));
  expect(refusal).toMatchObject({ kind: 'unavailable', code: 'COMPUTER_CONNECTIONS_FULL', retryAfterSeconds: 2 });
  // The visitors do not use the slots for other requests.
  await client.startProcess({ processId: 'prc_said', command: 'echo said' });
  expect((await outputOf(client, 'prc_said')).stdout).toBe('said\n');
  const leave = new AbortController();
  const follow = async () => {
    for await (const _ of client.output('prc_server', { follow: true, signal: leave.signal })) await turned();
  };
  const turned = () => new Promise<void>((resolve) => turns.push(resolve));
  const turns: (() => void)[] = [];
  const followers = Array.from({ length: 256 }, () => follow().catch(() => undefined));
  while (turns.length < 256) await new Promise(setImmediate);
  await expect(client.listProcesses()).rejects.toMatchObject({ code: 'COMPUTER_CONNECTIONS_FULL' });
  expect(await client.status()).toMatchObject({ agent: 'ready', runningProcesses: 1 });
  // The host would end a computer that does not answer a ping.
  await client.ping();
  leave.abort();
  for (const turn of turns) turn();
  for (const socket of visits) socket.destroy();
  await Promise.all(followers);
  await client.startProcess({ processId: 'prc_again', command: 'echo again' });
  expect((await outputOf(client, 'prc_again')).stdout).toBe('again\n');
  await (await client.dialPort(8000)).destroy();
});
