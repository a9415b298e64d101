import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { ComputerEgress } from '../../integrations/egress/computerEgress.ts';
import { type EgressDecision, EgressGuard } from '../../integrations/egress/guard.ts';
import { Pace } from '../../integrations/egress/pace.ts';
import { temporaryFolder } from '../support/folders.ts';

test('requests after a burst are delayed, and those that would wait too long are refused and do not count', () => {
  let now = 0;
  const pace = new Pace(3, 10, 1_000, () => now);
  expect([pace.take(), pace.take(), pace.take()]).toEqual([0, 0, 0]);
  expect([pace.take(), pace.take()]).toEqual([100, 200]);
  for (let index = 0; index < 8; index++) pace.take();
  expect(Array.from({ length: 100 }, () => pace.take())).toEqual(Array(100).fill(undefined));
  now = 1_000;
  expect(pace.take()).toBe(100);
  now = 60_000;
  expect([pace.take(), pace.take(), pace.take(), pace.take()]).toEqual([0, 0, 0, 100]);
  // A clock that was set back adds no delay.
  now = 0;
  expect(pace.take()).toBe(200);
});

test('refused requests of a flood are not logged', async () => {
  const decisions: EgressDecision[] = [];
  const record = async (decision: EgressDecision) => void decisions.push(decision);
  await using egress = new ComputerEgress({
    guard: new EgressGuard({ allowInternal: [], resolve: async () => ['127.0.0.1'] }),
    ownerOf: async () => ({ purpose: 'computer', policy: { allow: [], deny: [] }, record }),
    burst: 10,
    perSecond: 1,
    maxConnections: 200,
  });
  const file = path.join(temporaryFolder(), 'egress.sock');
  await egress.open({ computerId: 'cmp_1', path: file });
  const ask = async (index: number) => {
    const socket = connect(file);
    await once(socket, 'connect');
    socket.write(`CONNECT h${index}.example:443 HTTP/1.1\r\nhost: x\r\n\r\n`);
    return (await text(socket)).split(' ')[1];
  };
  const answers = await Promise.all(Array.from({ length: 150 }, (_, index) => ask(index)));
  const refused = answers.filter((status) => status === '429').length;
  expect(refused).toBeGreaterThan(100);
  expect(decisions.length).toBe(150 - refused);
});
