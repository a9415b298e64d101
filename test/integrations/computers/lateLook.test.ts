import type { HostContext } from '../../../integrations/computers/host/context.ts';
import { hostLayout } from '../../../integrations/computers/host/layout.ts';
import { endUnasked } from '../../../integrations/computers/host/life/watch.ts';
import { buildHost, runOn, startComputer } from '../../builders/host.ts';
import { drivers } from './drivers.ts';

const [{ options } = { options: {} }] = drivers;

it('a look that has seen the end of one run does not end the next run of the computer', async () => {
  await using built = await buildHost(options);
  const { host, dir } = built;
  const { spec, computerId, client } = await startComputer(host);
  await host.stop(computerId);
  await host.start({ ...spec, generation: 2 });
  // The host looks at many computers in turn. It may have read the record of this one before the stop.
  const context = { layout: hostLayout(dir) } as HostContext;
  await endUnasked(context, computerId, { generation: 1, reason: 'its holder ended without a word' });
  expect(await host.inspect(computerId)).toMatchObject({ state: 'running', generation: 2 });
  expect((await runOn(client, 'echo here')).stdout).toBe('here\n');
});
