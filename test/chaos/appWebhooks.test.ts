import { appsOf, type RunBody, webhookManifest } from '../builders/app.ts';
import { buildChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { drivers } from '../integrations/computers/drivers.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { sizeOf } from '../support/size.ts';
import { waitFor } from '../support/waitFor.ts';

// Each delivery makes one run, however often it is sent and whichever process is killed meanwhile.

const deliveries = sizeOf('APP_DELIVERIES', 30);
const kills = sizeOf('APP_DELIVERY_KILLS', 1);
const clients = 20;
const mostSends = 5;

// Each kill costs a start, which takes long on a busy machine.
jest.setTimeout(1_200_000);

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: Atrium is killed while deliveries come', () => {
  let product: TestProduct;
  beforeAll(async () => {
    const settings = { ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2', ATRIUM_APP_DELIVERIES_PER_MINUTE: '0' };
    product = await buildHostingProduct({ ...hurriedSweeper, ...settings });
  });
  afterAll(() => product.close());

  test('Each delivery runs once', async () => {
    const user = await buildChatUser(product);
    const apps = appsOf(product, user);
    const computer = await buildComputer(product, user);
    const id = await apps.app(webhookManifest('cat >> ~/ran', { concurrency: 20 }));
    const secret = await apps.secret(id);
    const names = Array.from({ length: deliveries }, (_, number) => `msg_${number}`);
    // The repeats of a delivery come after other deliveries.
    const sends = Array.from({ length: mostSends }, (_, round) =>
      names.filter((_name, number) => number % mostSends >= round),
    ).flat();
    const runOf = new Map<string, Set<string>>();
    let isUp = Promise.resolve();
    const client = async (): Promise<void> => {
      for (let name = sends.shift(); name !== undefined; name = sends.shift()) {
        await isUp;
        const answer = await apps.deliver(id, { secret, id: name, body: `${name}\n` }).catch(() => undefined);
        if (answer?.status !== 200) sends.push(name);
        else runOf.set(name, (runOf.get(name) ?? new Set()).add(answer.body.runId));
      }
    };
    const sending = Promise.all(Array.from({ length: clients }, client));
    for (let kill = 0; kill < kills; kill++) {
      await waitFor('some deliveries', () => runOf.size > (deliveries * kill) / kills / 2);
      await product.process.kill('SIGKILL');
      isUp = product.restart();
      await isUp;
    }
    await sending;
    expect([...runOf.keys()].toSorted()).toEqual(names.toSorted());
    const runs = new Set([...runOf.values()].flatMap((ids) => [...ids]));
    expect(runs.size).toBe(deliveries);

    const ended = await waitFor(
      'the end of all runs',
      async () => {
        const found = await everyRun();
        return found.length >= deliveries && found.every(({ endedAt }) => endedAt !== null) && found;
      },
      { timeoutMs: 900_000 },
    );
    expect(new Set(ended.map((run) => run.id))).toEqual(runs);
    const odd = ended.filter(
      ({ status, attempt, trigger }) => `${status} ${attempt} ${trigger}` !== 'succeeded 1 webhook',
    );
    expect(odd).toEqual([]);
    const { stdout } = await computer.exec('sort ran');
    expect(stdout.trim().split('\n')).toEqual(names.toSorted());

    async function everyRun(): Promise<RunBody[]> {
      const all: RunBody[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const path: string = `/api/apps/${id}/runs?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`;
        const { data, nextCursor }: { data: RunBody[]; nextCursor: string | null } = await user.get(path);
        all.push(...data);
        cursor = nextCursor;
      }
      return all;
    }
  });
});

if (usable.length === 0) {
  it('Skipped because this machine has no driver', () => expect(usable).toEqual([]));
}
