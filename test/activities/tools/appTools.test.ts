import { appsOf, manifestOf } from '../../builders/app.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { drivers } from '../../integrations/computers/drivers.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: app tools of agents', () => {
  let product: TestProduct;
  beforeAll(async () => {
    product = await buildHostingProduct();
  });
  afterAll(() => product.close());

  test('Agents list and run apps and read their runs', async () => {
    const user = await buildChatUser(product);
    const apps = appsOf(product, user);
    const computer = await buildComputer(product, user);
    const id = await apps.app(manifestOf('echo done; echo >> ~/count'));
    const { path } = (await apps.get(id)).body;
    const call = async (mode: string, ...calls: (readonly [string, unknown])[]) =>
      toolOutputs((await user.ask({ content: toolLines(calls), modelId: 'demo', mode })).chunks);

    const components = [{ component: 'run', kind: 'process', command: 'echo done; echo >> ~/count', isDefault: true }];
    expect(await call('ask', ['app_list', {}])).toEqual([{ apps: [{ app: path, name: 'App', components }] }]);
    expect(await call('ask', ['app_run', { app: path }])).toEqual([expect.stringContaining('may only read')]);
    const [run] = (await call('work', ['app_run', { app: path }])) as [{ run: string }];
    const ended = { component: 'run', status: 'succeeded', attempt: 1, exitCode: 0, output: 'done\n' };
    expect(run).toEqual({ run: expect.any(String), ...ended });
    expect(await call('ask', ['app_log', { run: run.run }])).toEqual([{ run: run.run, ...ended }]);
    expect((await computer.exec('wc -l < count')).stdout).toBe('1\n');
    expect((await apps.getRun(run.run)).body).toMatchObject({ trigger: 'agent', startedBy: user.id });
    expect(await call('work', ['app_run', { app: path, component: 'none' }])).toEqual([
      expect.stringContaining('no component none'),
    ]);
    expect(await call('work', ['app_run', { app: '/none' }])).toEqual([expect.stringContaining('nothing at /none')]);

    const other = await buildChatUser(product);
    const answer = await other.ask({
      content: toolLines([['app_log', { run: run.run }]]),
      modelId: 'demo',
      mode: 'ask',
    });
    expect(toolOutputs(answer.chunks)).toEqual([expect.stringContaining('no such run')]);
  });
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
