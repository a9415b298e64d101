import { Client, Connection, ScheduleNotFoundError } from '@temporalio/client';
import { type Automation, asScheduled } from '../../models/automations/automation.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createLauncher } from '../../temporal/launcher.ts';
import { automationSchedulePrefix } from '../../temporal/workflowIds.ts';
import { automationsOf } from '../builders/automations.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { waitFor } from '../support/waitFor.ts';

// Schedules in Temporal are hints about rows. The sweeper does not run here, so only the schedules or `mend` act.

let product: TestProduct;
let user: ChatUser;
let own: ReturnType<typeof automationsOf>;
let connection: Connection;
let client: Client;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' });
  user = await product.user();
  own = automationsOf(user);
  const { temporal } = product.environment.config;
  connection = await Connection.connect({ address: temporal.address });
  client = new Client({ connection, namespace: temporal.namespace });
});
afterAll(async () => {
  await connection.close();
  await product.close();
});

const prefix = () => automationSchedulePrefix(product.environment.config.installation);
const daily = { cron: '0 8 * * *', timeZone: 'Europe/Berlin' };

/** The next time at which a schedule fires, or `absent`. */
async function nextOf(id: string): Promise<string | undefined> {
  try {
    const { info } = await client.schedule.getHandle(`${prefix()}${id}`).describe();
    return info.nextActionTimes[0]?.toISOString();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return 'absent';
    throw error;
  }
}

const untilNext = (id: string, expected: string | null) =>
  waitFor(`the schedule of ${id} to say ${expected}`, async () => (await nextOf(id)) === expected);

test('The schedule of an automation starts it once, at its time', async () => {
  const at = new Date(Date.now() + 6_000).toISOString();
  const made = await own.make({ schedule: { at } });
  expect(await own.ended(made.id)).toMatchObject([{ kind: 'schedule', scheduledAt: at, status: 'completed' }]);
  expect(await own.get(made.id)).toMatchObject({ nextRunAt: null, enabled: true });
});

test('A schedule follows the changes of its row and is removed with it', async () => {
  const made = await own.make({ schedule: daily });
  await untilNext(made.id, made.nextRunAt);
  const later = await own.change(made.id, { schedule: { ...daily, cron: '30 9 * * *' } });
  expect(later.nextRunAt).not.toBe(made.nextRunAt);
  await untilNext(made.id, later.nextRunAt);
  await own.change(made.id, { enabled: false });
  await untilNext(made.id, 'absent');
  await untilNext((await own.change(made.id, { enabled: true })).id, later.nextRunAt);
  await own.send('DELETE', `/${made.id}`);
  await untilNext(made.id, 'absent');
});

test('Mending restores a lost schedule, updates an outdated one, and removes one without a row', async () => {
  const { config } = product.environment;
  const logger = createLogger({ level: 'silent' });
  const launcher = createLauncher({ client, config, logger, sharesWorkersConnection: false });
  const automation = (id: string, version: number, cron = '0 8 * * *') =>
    asScheduled({
      ...daily,
      id,
      spaceId: user.spaceId,
      version,
      nextRunAt: new Date(),
      schedule: { ...daily, cron },
    } as unknown as Automation);
  const [lost, behind, well, nobodys] = ['atm_lost', 'atm_behind', 'atm_well', 'atm_nobodys'] as const;
  for (const one of [automation(behind, 1), automation(well, 1), automation(nobodys, 1)]) {
    expect(await launcher.scheduleAutomation(one)).toBe('reached');
  }
  const rows = [automation(lost, 1), automation(behind, 2, '0 9 * * *'), automation(well, 1)];
  const mend = () =>
    launcher.mendAutomationSchedules(
      (async function* () {
        yield rows.slice(0, 2);
        yield rows.slice(2);
      })(),
    );
  // Temporal's list shows new and removed schedules a little late.
  await waitFor('the schedules to be mended', async () => {
    const { put, removed, failed } = await mend();
    const hours = await Promise.all([lost, behind, well, nobodys].map(hourOf));
    return hours.join() === '8,9,8,' && put + removed + failed === 0;
  });
  expect(await nextOf(nobodys)).toBe('absent');
});

/** The hour, by the clock of its zone, at which a schedule fires. */
async function hourOf(id: string): Promise<string> {
  const next = await nextOf(id);
  if (next === undefined || next === 'absent') return '';
  const options = { timeZone: daily.timeZone, hour: 'numeric', hourCycle: 'h23' } as const;
  return `${Number(new Intl.DateTimeFormat('en', options).format(new Date(next)))}`;
}
