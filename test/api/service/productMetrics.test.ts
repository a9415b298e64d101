import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_LOG_LEVEL: 'info',
    ATRIUM_SWEEP_INTERVAL_SECONDS: '1',
    ATRIUM_MAX_STEPS_PER_TURN: '1',
  });
});
afterAll(() => product.close());

/** The value of a series, by its name and labels as they are printed. */
async function metric(series: string): Promise<number | undefined> {
  const text = await (await fetch(`${product.url}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
}

test('turns, model calls, tokens, streams and sweeps are counted', async () => {
  const user = await product.user();
  await user.ask({ content: fake({ tokens: ['One', ' two'] }), modelId: 'fake-1' });
  const { turnId } = await user.ask({ content: '/tool drive_list {}', modelId: 'demo' });
  await user.ended(turnId);

  expect(await metric('atrium_turns_begun_total{model="fake-1"}')).toBe(1);
  expect(await metric('atrium_turns_ended_total{status="completed",code=""}')).toBe(1);
  expect(await metric('atrium_turns_ended_total{status="failed",code="STEP_LIMIT"}')).toBe(1);
  expect(await metric('atrium_turn_duration_seconds_count{status="completed"}')).toBe(1);
  expect(await metric('atrium_first_output_seconds_count{model="fake-1"}')).toBe(1);
  expect(await metric('atrium_model_calls_total{model="fake-1",outcome="completed"}')).toBe(1);
  expect(await metric('atrium_model_calls_total{model="demo",outcome="completed"}')).toBe(1);
  expect(await metric('atrium_model_tokens_total{model="fake-1",kind="output"}')).toBeGreaterThan(0);
  expect(await metric('atrium_turns{status="running"}')).toBe(0);
  await waitFor('a sweep', async () => (await metric('atrium_swept_total{sweep="sweepTurns",outcome="looked"}')) === 0);
  await waitFor('the streams to be closed', async () => (await metric('atrium_open_streams')) === 0);
});

test('The log has a line for the beginning and for the end of a turn, without what was said', async () => {
  const user = await product.user();
  const { turnId } = await user.ask({ content: fake({ tokens: ['Heliotrope'] }), modelId: 'fake-1' });
  const lines = await waitFor('both lines', () => {
    const found = product.process
      .log()
      .split('\n')
      .filter((line) => line.includes(turnId));
    const logged = found.map((line) => JSON.parse(line) as Record<string, unknown>);
    return logged.some(({ msg }) => msg === 'A turn has ended.') && logged;
  });
  expect(lines.find(({ msg }) => msg === 'A turn has begun.')).toMatchObject({ turnId, modelId: 'fake-1' });
  expect(lines.find(({ msg }) => msg === 'A turn has ended.')).toMatchObject({
    ...{ turnId, modelId: 'fake-1', status: 'completed', finishReason: 'stop', code: null },
    seconds: expect.any(Number),
  });
  expect(JSON.stringify(lines)).not.toContain('Heliotrope');
});
