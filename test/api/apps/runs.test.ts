import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import type { AppDeps } from '../../../activities/apps/deps.ts';
import { createAppActivities } from '../../../activities/apps/index.ts';
import { createUsers } from '../../../models/identity/users.ts';
import { appsOf, manifestOf, type TimelineBody } from '../../builders/app.ts';
import { asUser, buildChatUser } from '../../builders/chat.ts';
import { buildComputer } from '../../builders/computer.ts';
import { buildHostedGit, treeOf } from '../../builders/hostedRepository.ts';
import { gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { toolLines } from '../../builders/tools.ts';
import { startReceiver } from '../../builders/webhookReceiver.ts';
import { drivers } from '../../integrations/computers/drivers.ts';
import { inFull } from '../../support/inFull.ts';
import { openAsOwner } from '../../support/plans.ts';
import { sizeOf } from '../../support/size.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('apps');

const outputBytes = sizeOf('RUN_OUTPUT_BYTES', 100_000_000);
const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options));

describe.each(usable.slice(0, 1))('$name: runs of apps', () => {
  let product: TestGit;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  beforeAll(async () => {
    receiver = await startReceiver();
    product = await buildHostedGit({ ATRIUM_EGRESS_ALLOW_INTERNAL: `${receiver.host},localhost` });
  });
  afterAll(async () => {
    await product.close();
    await receiver.close();
  });

  async function setUp() {
    const user = await buildChatUser(product);
    return { user, apps: appsOf(product, user), computer: await buildComputer(product, user) };
  }

  test('Other processes of the computer cannot see the secrets of a run', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const command = 'echo "$API_TOKEN" | md5sum > ~/begun; while [ -e ~/hold ]; do sleep 0.1; done';
    // What any process of the computer can read: environments that name the app's component or the secret.
    const look =
      "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -E '^(ATRIUM_COMPONENT|API_TOKEN)=' | rev";
    const seen: string[] = [];
    for (const secrets of [['API_TOKEN'], []]) {
      await computer.exec('rm -f begun; touch hold');
      const running = apps.run(await apps.app(manifestOf(command, { secrets })));
      await waitFor('the run to begin', async () => (await computer.exec('cat begun')).stdout.includes('-'));
      seen.push((await computer.exec(look)).stdout);
      await computer.exec('rm hold');
      expect((await running).body).toMatchObject({ ok: true });
    }
    expect(seen[0]).toBe('');
    // The process of a run without secrets is visible like any other.
    expect(seen[1]).toContain('nur=TNENOPMOC_MUIRTA');
  });

  test('A component runs in its folder with its current variables, secrets and files', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const command =
      'pwd; echo $GREETING $ATRIUM_COMPONENT $ATRIUM_ATTEMPT; cat words.txt sub/more.txt; echo $API_TOKEN; echo x >> own';
    const manifest = manifestOf(command, { env: { GREETING: 'hello' }, secrets: ['API_TOKEN'] });
    const id = await apps.app(manifest, { 'words.txt': 'one\n', 'sub/more.txt': 'two\n' });
    const first = await apps.run(id);
    expect(first).toMatchObject({ status: 200, body: { ok: true, status: 'succeeded' } });
    expect(first.body.error).toBeUndefined();
    expect(first.body.output).toMatch(/apps\/\S+\nhello run 1\none\ntwo\n/);
    // The secret is masked in the output and in the log. The stored log stays masked after the secret is deleted.
    expect(first.body.output).toContain('two\n***************\n');
    expect(await apps.log(first.body.runId)).toMatchObject({ text: first.body.output });
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'DELETE' });
    expect(await apps.log(first.body.runId)).toMatchObject({ text: first.body.output });
    expect((await apps.getRun(first.body.runId)).body).toMatchObject({
      appId: id,
      component: 'run',
      trigger: 'request',
      attempt: 1,
      exitCode: 0,
      signal: null,
      error: null,
      computerId: computer.id,
      processId: `${first.body.runId}-1`,
      startedBy: user.id,
    });

    // Changed files are copied to the computer, deleted files are removed there, and the app's own files stay.
    await apps.put(id, 'words.txt', 'three\n');
    const { body } = await apps.send<{ data: { id: string; name: string }[] }>(
      'GET',
      `${apps.space}/drive/items?parentId=${id}`,
    );
    const sub = body.data.find(({ name }) => name === 'sub')?.id;
    await apps.send('DELETE', `${apps.space}/drive/items/${sub}`);
    await apps.put(id, 'atrium.yaml', manifestOf('cat words.txt; ls sub; wc -l < own'));
    const second = (await apps.run(id)).body;
    expect(second).toMatchObject({ ok: true, output: 'three\n1\n' });
    const runs = (await apps.runs(id)).body.data;
    expect(runs.map((run) => run.id)).toEqual([second.runId, first.body.runId]);
  });

  test('The webhook endpoints of a space are told of the end of a run', async () => {
    const { user, apps } = await setUp();
    const body = { url: receiver.url, events: ['run.ended'] };
    const made = await user.fetch(`${apps.space}/webhook-endpoints`, { method: 'POST', body });
    const { secret } = (await made.json()) as { secret: string };
    const appId = await apps.app(manifestOf('echo out of patience; exit 7'));
    const { runId } = (await apps.run(appId)).body;
    const { headers, body: sent } = await waitFor('the webhook', () => receiver.received[0]);
    expect(new Webhook(secret).verify(sent, headers as Record<string, string>)).toEqual({
      type: 'run.ended',
      timestamp: expect.any(String),
      data: {
        ...{ runId, appId, spaceId: user.spaceId, component: 'run' },
        ...{ status: 'failed', exitCode: 7, errorCode: 'RUN_FAILED' },
      },
    });
    const { data } = (await apps.runs(appId)).body;
    expect(data.map(({ id }) => id)).toEqual([runId]);
    expect(receiver.received).toHaveLength(1);
  });

  test('A failed run says why, with a code for each way to fail', async () => {
    const { apps } = await setUp();
    const outcomeOf = async (command: string, more: object = {}) => {
      const id = await apps.app(manifestOf(command, { ...more }));
      const { ok, error, code, runId } = (await apps.run(id)).body;
      const { status, exitCode, signal, error: why, attempt } = (await apps.getRun(runId)).body;
      expect([error, code]).toEqual([why?.detail, why?.code]);
      return { ok, status, exitCode, signal, code: why?.code, attempt };
    };
    const failed = { ok: false, status: 'failed', signal: null, attempt: 1 };
    expect(await outcomeOf('exit 3')).toEqual({ ...failed, exitCode: 3, code: 'RUN_FAILED' });
    expect(await outcomeOf('kill -9 $$')).toMatchObject({
      ok: false,
      status: 'failed',
      signal: 'SIGKILL',
      code: 'RUN_KILLED',
    });
    expect(await outcomeOf('sleep 1000', { timeout: 1 })).toMatchObject({ status: 'timed_out', code: 'RUN_TIMED_OUT' });
    expect(await outcomeOf('true', { cwd: 'none' })).toMatchObject({
      ...failed,
      exitCode: null,
      code: 'CWD_NOT_FOUND',
    });
    expect(await outcomeOf('true', { secrets: ['NONE'] })).toMatchObject({ ...failed, code: 'SECRET_MISSING' });
    // These failures are not retried: each attempt would fail the same way until a user corrects the app.
    const thrice = { retry: { attempts: 3, delay: 0 } };
    for (const [more, code] of [
      [{ secrets: ['NONE'] }, 'SECRET_MISSING'],
      [{ cwd: 'none' }, 'CWD_NOT_FOUND'],
    ] as const) {
      const { body } = await apps.run(await apps.app(manifestOf('true', { ...thrice, ...more })));
      expect((await apps.getRun(body.runId)).body).toMatchObject({ status: 'failed', attempt: 1, error: { code } });
    }
    // The second attempt succeeds, and finds the files that the first one left.
    const again = await outcomeOf('echo >> n; test $(wc -l < n) = 2', { retry: { attempts: 3, delay: 0 } });
    expect(again).toMatchObject({ ok: true, status: 'succeeded', attempt: 2, exitCode: 0 });
    expect(await outcomeOf('exit 1', { retry: { attempts: 2, delay: 0 } })).toMatchObject({
      ...failed,
      attempt: 2,
      exitCode: 1,
    });
  });

  full.test(
    'A run that prints much, or that leaves background processes, ends',
    async () => {
      const { apps } = await setUp();
      const much = await apps.app(manifestOf(`head -c ${outputBytes} /dev/zero | tr "\\0" x; echo; echo end >&2`));
      const run = (await apps.run(much)).body;
      const ended = await apps.ended(run.runId);
      expect(ended.status).toBe('succeeded');
      expect(ended.output?.length).toBeLessThan(200_000);
      const log = await apps.log(run.runId);
      expect(log.text).toContain('bytes were dropped here');
      expect(log.position).toBe(outputBytes + 5);
      const forking = await apps.app(manifestOf('sleep 1000 & echo begun'));
      expect((await apps.run(forking)).body).toMatchObject({ ok: true, output: 'begun\n' });
    },
    180_000 + outputBytes / 1_000,
  );

  test('A run succeeds although the drive has no room for its log', async () => {
    const { user, apps, computer } = await setUp();
    const id = await apps.app(manifestOf('echo ran; echo >> ~/count', { retry: { attempts: 3, delay: 0 } }));
    const { pool } = product.environment.database;
    await pool.query('UPDATE drives SET used_bytes = used_bytes + ? WHERE space_id = ?', [2 ** 50, user.spaceId]);
    const { runId } = (await apps.run(id)).body;
    expect(await apps.ended(runId)).toMatchObject({ status: 'succeeded', attempt: 1, error: null, output: 'ran\n' });
    expect((await computer.exec('wc -l < count')).stdout).toBe('1\n');
    expect((await apps.log(runId)).status).toBe(410);
  });

  test('The log has a line for the end of a run, without what it printed', async () => {
    const { apps } = await setUp();
    const appId = await apps.app(manifestOf('echo Heliotrope; exit 3'));
    const { runId } = (await apps.run(appId)).body;
    await apps.ended(runId);
    const lines: object[] = [];
    const logger = { info: (facts: object) => lines.push(facts) };
    const deps = {
      ...product.environment,
      logger,
      workflows: { startRun: async () => 'reached' },
    } as unknown as AppDeps;
    await createAppActivities(deps).lookAtAppRun({ runId });
    const end = { status: 'failed', code: 'RUN_FAILED', exitCode: 3, attempts: 1, seconds: expect.any(Number) };
    const of = { runId, appId, component: expect.any(String), spaceId: expect.any(String) };
    expect(lines).toEqual([{ ...of, ...end }]);
  });

  test('Giving up a run ends its process', async () => {
    const { apps, computer } = await setUp();
    const id = await apps.app(manifestOf('sleep 1000'));
    await computer.exec('true');
    await using owner = new AsyncDisposableStack();
    const connection = await openAsOwner(product.environment.environment.ATRIUM_DATABASE_MIGRATION_URL);
    owner.defer(() => connection.end());
    // The values to mask cannot be read, so the process cannot be followed.
    await connection.query('RENAME TABLE secrets TO secrets_away');
    owner.defer(async () => void (await connection.query('RENAME TABLE secrets_away TO secrets')));
    const { runId } = (await apps.run(id)).body;
    expect(await apps.ended(runId)).toMatchObject({ status: 'failed', error: { code: 'RUN_FAILED' } });
    await owner.disposeAsync();
    expect(await computer.expect(200, 'GET', `/processes/${runId}-1`)).toMatchObject({ state: 'killed' });
  });

  test('An attempt that is past its time limit goes on while its process runs', async () => {
    const { apps, computer } = await setUp();
    const id = await apps.app(manifestOf('touch ~/begun; while [ -e ~/hold ]; do sleep 0.1; done'));
    await computer.exec('touch hold');
    const running = apps.run(id);
    await waitFor('the run to begin', async () => (await computer.exec('ls begun')).exitCode === 0);
    const [run] = (await apps.runs(id)).body.data;
    // As on a paused computer, which still knows the process.
    const client = { process: () => Promise.resolve({ state: 'running' }) };
    const liveComputers = { settled: () => Promise.resolve(), asIs: () => Promise.resolve(client) };
    const deps = { ...product.environment, liveComputers, workflows: {} };
    const { failAppRunAttempt } = createAppActivities(deps as unknown as AppDeps);
    await failAppRunAttempt({ runId: run?.id ?? '', attempt: 1, code: 'TIMED_OUT' });
    expect((await apps.getRun(run?.id ?? '')).body.status).toBe('running');
    await computer.exec('rm hold');
    expect(await apps.ended(run?.id ?? '')).toMatchObject({ status: 'succeeded', attempt: 1 });
    await running;
  });

  test('Disabling a user cancels the runs of that user', async () => {
    const { user, apps, computer } = await setUp();
    const id = await apps.app(manifestOf('touch ~/begun; sleep 1000'));
    const { database } = product.environment;
    const asked = apps.run(id).catch(() => undefined);
    await waitFor('the run to begin', async () => (await computer.exec('ls begun')).exitCode === 0);
    await createUsers(database).setDisabled(user.id, true);
    await waitFor('the run to end', async () => {
      const [rows] = await database.pool.query('SELECT status FROM app_runs WHERE user_id = ?', [user.id]);
      return (rows as { status: string }[])[0]?.status === 'cancelled';
    });
    await asked;
  });

  test('Requests with the same idempotency key run the app once', async () => {
    const { apps, computer } = await setUp();
    const id = await apps.app(manifestOf('echo >> ~/count'));
    const key = { 'idempotency-key': randomUUID() };
    const [one, two] = await Promise.all([apps.run(id, {}, key), apps.run(id, {}, key)]);
    const answers = [one, two, await apps.run(id, {}, key)];
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    expect(new Set(answers.flatMap(({ status, body }) => (status === 200 ? [body.runId] : []))).size).toBe(1);
    expect((await computer.exec('wc -l < count')).stdout).toBe('1\n');
    expect((await apps.run(id, { component: 'none' })).body.code).toBe('APP_COMPONENT_UNKNOWN');
    await apps.put(id, 'atrium.yaml', 'name: x\n');
    expect(await apps.run(id)).toMatchObject({ status: 422, body: { code: 'APP_MANIFEST_INVALID' } });
  });

  test('The runs of an app run one after another, and a cancelled run ends', async () => {
    const { apps, computer } = await setUp();
    const id = await apps.app(manifestOf('echo $ATRIUM_RUN_ID >> ~/order; while [ -e ~/hold ]; do sleep 0.1; done'));
    await computer.exec('touch hold');
    const asked = [apps.run(id)];
    const begun = (count: number) =>
      waitFor('the runs', async () => {
        const { data } = (await apps.runs(id)).body;
        return data.length === count && data.some(({ status }) => status === 'running') ? data.toReversed() : undefined;
      });
    // Requests at the same moment come in any order.
    await begun(1);
    asked.push(apps.run(id), apps.run(id));
    const runs = await begun(3);
    expect(runs.map(({ status }) => status)).toEqual(['running', 'queued', 'queued']);
    const [first, second, third] = runs.map((run) => run.id);
    await waitFor('the first run to begin', async () => (await computer.exec('cat order')).stdout === `${first}\n`);
    expect((await apps.cancel(second ?? '')).status).toBe(200);
    expect((await apps.ended(second ?? '')).status).toBe('cancelled');
    expect((await apps.cancel(first ?? '')).body.cancelRequestedAt).not.toBeNull();
    expect(await apps.ended(first ?? '')).toMatchObject({ status: 'cancelled', error: null });
    expect(await apps.cancel(first ?? '')).toMatchObject({ status: 409, body: { code: 'RUN_ENDED' } });
    await computer.exec('rm hold');
    expect((await apps.ended(third ?? '')).status).toBe('succeeded');
    expect((await computer.exec('cat order')).stdout).toBe(`${first}\n${third}\n`);
    await Promise.all(asked);
    const other = appsOf(product, await buildChatUser(product));
    const answers = [await other.getRun(first ?? ''), await other.cancel(third ?? ''), await other.run(id)];
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await other.log(first ?? '')).status).toBe(404);
  });

  test('A log is read live and after the end, from any position', async () => {
    const { user, apps, computer } = await setUp();
    const id = await apps.app(manifestOf('echo one; while [ ! -e ~/go ]; do sleep 0.1; done; echo two >&2'));
    const running = apps.run(id);
    const run = await waitFor('the run to start', async () =>
      (await apps.runs(id)).body.data.find((one) => one.status === 'running'),
    );
    const live = user.fetch(`/api/runs/${run.id}/log`, { headers: { accept: 'text/event-stream' } });
    const stream = (await live).body?.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>;
    let events = '';
    for await (const text of stream) {
      events += text;
      if (events.includes('"text":"one\\n"') && !events.includes('"text":"two')) await computer.exec('touch go');
    }
    expect(events).toContain('"stream":"stdout","position":0,"text":"one\\n"');
    expect(events).toContain('"stream":"stderr","position":4,"text":"two\\n"');
    expect(events).toContain('event: exit');
    await running;
    const stored = await user.fetch(`/api/runs/${run.id}/log?after=2`, { headers: { accept: 'text/event-stream' } });
    expect(await stored.text()).toContain('"stream":"stdout","position":2,"text":"e\\n"');
    expect((await apps.log(run.id)).text).toBe('one\ntwo\n');
    expect((await apps.log(run.id, 9)).status).toBe(400);
  });

  test('The log of a run goes on over its attempts, live and stored, from any position', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    // The first attempt fails with an exit code, and the second by a signal.
    const command = `n=$ATRIUM_ATTEMPT; echo out $n; while [ ! -e ~/go$n ]; do sleep 0.1; done; echo $API_TOKEN $n
      [ $n != 1 ] || exit 7; [ $n != 2 ] || kill -9 $$`;
    const retry = { attempts: 3, delay: 0 };
    const id = await apps.app(manifestOf(command, { secrets: ['API_TOKEN'], retry }));
    const running = apps.run(id);
    const run = await waitFor('the run to start', async () =>
      (await apps.runs(id)).body.data.find((one) => one.status === 'running'),
    );
    const path = `/api/runs/${run.id}/log`;
    const asEvents = { accept: 'text/event-stream' };
    const live = (await user.fetch(path, { headers: asEvents })).body?.pipeThrough(new TextDecoderStream());
    let events = '';
    for await (const text of live as unknown as AsyncIterable<string>) {
      events += text;
      for (const attempt of [1, 2, 3]) {
        if (events.includes(`"text":"out ${attempt}\\n"`)) await computer.exec(`touch go${attempt}`);
      }
    }
    await running;
    expect((await apps.ended(run.id)).attempt).toBe(3);
    const whole = [1, 2, 3].map((attempt) => `out ${attempt}\n*************** ${attempt}\n`).join('');
    const textOf = (all: string) =>
      [...all.matchAll(/"text":("[^\n]*")\}/g)].map(([, json]) => JSON.parse(json ?? '') as string).join('');
    const namesOf = (all: string) => [...all.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
    expect(textOf(events)).toBe(whole);
    expect(namesOf(events).filter((name) => name !== 'output')).toEqual(['attempt', 'attempt', 'exit']);
    const first = {
      status: 'failed',
      exitCode: 7,
      signal: null,
      error: expect.objectContaining({ code: 'RUN_FAILED' }),
    };
    const second = {
      status: 'failed',
      exitCode: null,
      signal: 'SIGKILL',
      error: expect.objectContaining({ code: 'RUN_KILLED' }),
    };
    const marks = [...events.matchAll(/event: attempt\nid: (\d+)\ndata: (.*)\n/g)];
    expect(marks.map(([, at, data]) => [Number(at), JSON.parse(data ?? '')])).toEqual([
      [24, { position: 24, attempt: 2, after: first }],
      [48, { position: 48, attempt: 3, after: second }],
    ]);
    expect(events).not.toContain('hunter2');
    // After the end, the log is the same from any position.
    for (let after = 0; after <= whole.length; after += 4) {
      const again = await (await user.fetch(`${path}?after=${after}`, { headers: asEvents })).text();
      expect([after, textOf(again)]).toEqual([after, whole.slice(after)]);
      expect(namesOf(again).at(-1)).toBe('exit');
    }
    const text = await apps.log(run.id);
    expect(text.position).toBe(72);
    expect(text.text.split('\n')).toEqual([
      'out 1',
      '*************** 1',
      '',
      '[attempt 2, after the one before ended with exit code 7]',
      'out 2',
      '*************** 2',
      '',
      '[attempt 3, after the one before was ended by SIGKILL]',
      'out 3',
      '*************** 3',
      '',
    ]);
    expect((await apps.log(run.id, 73)).status).toBe(400);
  });

  test('The timeline of a run has its attempts, wakes and costs', async () => {
    const { user, apps, computer } = await setUp();
    const command = 'echo my plan; [ $ATRIUM_ATTEMPT != 1 ] || exit 7';
    const id = await apps.app(manifestOf(command, { retry: { attempts: 2, delay: 0 } }));
    const { runId } = (await apps.run(id)).body;
    await apps.ended(runId);
    const { body } = await apps.send<TimelineBody>('GET', `/api/runs/${runId}/timeline`);
    const failed = { code: 'RUN_FAILED', detail: expect.any(String) };
    expect(body).toMatchObject({
      runId,
      status: 'succeeded',
      trigger: 'request',
      component: 'run',
      computerId: computer.id,
      workflow: { id: `appRun/${runId}` },
      cancelRequestedAt: null,
      attempts: [
        { attempt: 1, status: 'failed', exitCode: 7, signal: null, error: failed, outputBytes: 8, computerWoken: true },
        { attempt: 2, status: 'succeeded', exitCode: 0, error: null, outputBytes: 8, computerWoken: false },
      ],
      outputBytes: 16,
      computerCredits: 0,
    });
    const times = [body.queuedAt, body.startedAt];
    for (const { beganAt, computerReadyAt, startedAt, endedAt } of body.attempts) {
      times.push(beganAt, computerReadyAt, startedAt, endedAt);
    }
    times.push(body.endedAt);
    expect(times).not.toContain(null);
    expect(times).toEqual(times.toSorted());
    expect(JSON.stringify(body)).not.toContain('plan');
    // A run that could not start says why.
    const absent = (await apps.run(await apps.app(manifestOf('true', { secrets: ['NONE'] })))).body;
    const timeline = await apps.send<TimelineBody>('GET', `/api/runs/${absent.runId}/timeline`);
    expect(timeline.body.attempts).toMatchObject([
      { status: 'failed', error: { code: 'SECRET_MISSING' }, startedAt: null },
    ]);
    const other = await buildChatUser(product);
    expect((await other.fetch(`/api/runs/${runId}/timeline`)).status).toBe(404);
    const { identity } = product;
    const viewer = await buildChatUser(product);
    await identity.members.add(user.spaceId, viewer.email, 'viewer');
    expect((await viewer.fetch(`/api/runs/${runId}/timeline`)).status).toBe(200);
  });

  test('An app runs on the computer it is set to, and removing the app removes its runs', async () => {
    const { apps, computer } = await setUp();
    const id = await apps.app(manifestOf('touch ~/here'));
    const { id: computerId } = (await apps.send<{ id: string }>('POST', `${apps.space}/computers`, {})).body;
    const run = await apps.send<{ ok: boolean; runId: string }>('POST', `/api/apps/${id}/process/set-computer`, {
      computerId,
    });
    expect(run).toMatchObject({ status: 200, body: { ok: true } });
    expect((await apps.getRun(run.body.runId)).body.computerId).toBe(computerId);
    expect((await apps.get(id)).body.computerId).toBe(computerId);
    expect((await computer.exec('ls here')).exitCode).not.toBe(0);
    expect(await apps.send('POST', `/api/apps/${id}/process/set-computer`, { computerId: 'cmp_none' })).toMatchObject({
      status: 404,
    });
    await apps.remove(id);
    await waitFor('the runs of the removed app to go', async () => (await apps.getRun(run.body.runId)).status === 404);
  });

  test('A waiting run fails when its user leaves the space, and a key needs the scopes of what it runs', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const id = await apps.app(manifestOf('while [ -e ~/hold ]; do sleep 0.1; done'));
    await computer.exec('touch hold');
    const { identity } = product;
    const editor = await buildChatUser(product);
    await identity.members.add(user.spaceId, editor.email, 'editor');
    const held = apps.run(id);
    await waitFor('the first run', async () => (await apps.runs(id)).body.data[0]?.status === 'running');
    const refused = appsOf(product, editor).run(id);
    const waiting = await waitFor('the second run', async () =>
      (await apps.runs(id)).body.data.find((run) => run.status === 'queued'),
    );
    expect((await apps.send('DELETE', `${apps.space}/members/${editor.id}`)).status).toBe(204);
    await computer.exec('rm hold');
    expect(await apps.ended(waiting.id)).toMatchObject({ status: 'failed', error: { code: 'RUN_NOT_ALLOWED' } });
    expect((await held).body.ok).toBe(true);
    await refused;

    const { key } = await identity.keys.create(user.id, { name: 'key', scopes: ['apps:write'] });
    const byKey = (itemId: string) =>
      apps.send<{ ok: boolean }>('POST', `/api/apps/${itemId}/process/run`, {}, { authorization: `Bearer ${key}` });
    expect((await byKey(id)).body.ok).toBe(true);
    const withSecret = await apps.app(manifestOf('true', { secrets: ['API_TOKEN'] }));
    expect(await byKey(withSecret)).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  });

  test('The version in use runs while files that a drive-only key changed wait for approval', async () => {
    const { user, apps } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const manifest = manifestOf('./report.sh; ls', { secrets: ['API_TOKEN'] });
    const id = await apps.app(manifest, { 'report.sh': 'echo report' });
    const { key } = await product.identity.keys.create(user.id, { name: 'key', scopes: ['drive:write'] });
    const byKey = appsOf(product, asUser(product, { ...user, token: key }));
    await byKey.put(id, 'report.sh', 'echo $API_TOKEN | rev');
    await byKey.put(id, 'more.sh', 'true');
    const { waitingVersionId } = (await apps.get(id)).body;
    const before = (await apps.run(id)).body;
    expect(before).toMatchObject({ ok: true, output: 'report\natrium.yaml\nreport.sh\n', waitingVersionId });
    await apps.put(id, 'report.sh', 'echo mended');
    const { waitingVersionId: mended } = (await apps.get(id)).body;
    expect((await apps.approve(id, mended ?? '')).status).toBe(200);
    const after = (await apps.run(id)).body;
    expect(after).toMatchObject({ ok: true, output: 'mended\natrium.yaml\nmore.sh\nreport.sh\n' });
    expect(after.waitingVersionId).toBeUndefined();
  });

  test('A run with secrets gets the files of its version, whatever was written over them', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const manifest = manifestOf('./report.sh; sh sub/more.sh; cat data', { secrets: ['API_TOKEN'] });
    const id = await apps.app(manifest, { 'report.sh': 'echo report', 'sub/more.sh': 'echo more' });
    const folder = `apps/${id}`;
    await computer.exec(`mkdir -p ${folder} && echo first > ${folder}/data`);
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'report\nmore\nfirst\n' });
    const evil = 'echo $API_TOKEN | rev';
    const write = ['computer_write', { path: `${folder}/report.sh`, content: evil }] as const;
    await user.ask({ content: toolLines([write]), modelId: 'demo', mode: 'work' });
    expect((await computer.exec(`cat ${folder}/report.sh`)).stdout).toBe(evil);
    await computer.exec(`echo second > ${folder}/data`);
    // Other files in the folder stay, whether the app or a user wrote them.
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'report\nmore\nsecond\n' });
    // Replacing a file with a folder or a symbolic link does not help either.
    const others = [`rm ${folder}/report.sh`, `rm ${folder}/sub/more.sh`, `mkdir ${folder}/sub/more.sh`];
    await computer.exec([...others, `echo '${evil}' > evil`, `ln -s ../../evil ${folder}/report.sh`].join(' && '));
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'report\nmore\nsecond\n' });
    expect((await computer.exec('cat evil')).stdout).toBe(`${evil}\n`);
  });

  test('A run with secrets does not start when the files of its version cannot be placed', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const manifest = manifestOf('cat a/x b/x; touch ~/ran', { secrets: ['API_TOKEN'] });
    const id = await apps.app(manifest, { 'a/x': '1', 'b/x': '2' });
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: '12' });
    // Two paths of the version now lead to one file, so the second write would change both.
    await computer.exec(`rm -r ran apps/${id}/b && ln -s a apps/${id}/b`);
    expect((await apps.run(id)).body).toMatchObject({ ok: false, code: 'APP_FILES_CHANGED' });
    expect((await computer.exec('ls ran')).exitCode).not.toBe(0);
  });

  test('A manifest in a working tree waits for approval when it asks for more than the one in use', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const git = gitOf(user);
    const remote = remoteRepository(product.server, { 'atrium.yaml': manifestOf('echo one') });
    const { id } = (await git.clone({ url: remote.url })).body;
    const { treePath } = await git.cloned(id);
    await computer.exec('true');
    await treeOf(git, id).post('checkout', {});
    expect((await apps.make(id)).status).toBe(201);
    const write = (manifest: string) =>
      computer.exec(`echo ${Buffer.from(manifest).toString('base64')} | base64 -d > ${treePath}/atrium.yaml`);
    await write(manifestOf('echo two'));
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: 'two\n' });
    await write(manifestOf('echo three; env', { secrets: ['API_TOKEN'] }));
    const run = (await apps.run(id)).body;
    expect(run).toMatchObject({ ok: true, output: 'two\n', waitingVersionId: expect.any(String) });
    const waiting = run.waitingVersionId ?? '';
    expect((await apps.version(id, waiting)).body).toMatchObject({ reasons: [{ code: 'ASKS_FOR_MORE' }], files: null });
    expect((await apps.approve(id, waiting)).status).toBe(200);
    expect((await apps.run(id)).body.output).toMatch(/^three\n/);
  });

  test('Code that a git-only key checked out waits for approval before it runs', async () => {
    const { user, apps, computer } = await setUp();
    await user.fetch(`${apps.space}/secrets/API_TOKEN`, { method: 'PUT', body: { value: 'hunter2-hunter2' } });
    const git = gitOf(user);
    const manifest = manifestOf('sh run.sh', { secrets: ['API_TOKEN'] });
    const remote = remoteRepository(product.server, { 'atrium.yaml': manifest, 'run.sh': 'echo one' });
    const { id } = (await git.clone({ url: remote.url })).body;
    await git.cloned(id);
    await computer.exec('true');
    await treeOf(git, id).post('checkout', {});
    expect((await apps.make(id)).status).toBe(201);
    const { key } = await product.identity.keys.create(user.id, { name: 'key', scopes: ['git:write'] });
    const byKey = treeOf(gitOf(asUser(product, { ...user, token: key })), id);
    expect((await byKey.post('checkout', {})).status).toBe(200);
    const waits = { status: 409, body: { code: 'APP_VERSION_WAITS' } };
    expect(await apps.run(id)).toMatchObject(waits);
    const { waitingVersionId: first } = (await apps.get(id)).body;
    await apps.refuse(id, first ?? '');
    expect(await apps.run(id)).toMatchObject(waits);
    const { waitingVersionId: second } = (await apps.get(id)).body;
    expect((await apps.approve(id, second ?? '')).status).toBe(200);
    expect((await apps.run(id)).body).toMatchObject({ ok: true });
    // A checkout by a user with all rights waits for nothing.
    expect((await treeOf(git, id).post('checkout', {})).status).toBe(200);
    expect((await apps.run(id)).body).toMatchObject({ ok: true });
  });

  test('a repository runs in its working tree', async () => {
    const { user, apps, computer } = await setUp();
    const git = gitOf(user);
    const remote = remoteRepository(product.server, {
      'atrium.yaml': manifestOf('cat a.txt; git rev-parse HEAD; git commit -q --allow-empty -m run'),
      'a.txt': 'a\n',
    });
    const { id } = (await git.clone({ url: remote.url })).body;
    const { treePath } = await git.cloned(id);
    const missing = { status: 409, body: { code: 'GIT_TREE_MISSING' } };
    expect(await apps.make(id)).toMatchObject(missing);
    // The computer exists by now, but has no working tree.
    await computer.exec('true');
    expect(await apps.make(id)).toMatchObject(missing);
    await treeOf(git, id).post('checkout', {});
    expect(await apps.make(id)).toMatchObject({ status: 201, body: { kind: 'repository', folder: treePath } });
    await computer.exec(`echo changed > ${treePath}/a.txt`);
    expect((await apps.run(id)).body).toMatchObject({ ok: true, output: `changed\n${remote.commit}\n` });
    // Like a command at a terminal, the run commits in the name of its user.
    const { stdout } = await computer.exec(`cd ${treePath}; git log -1 --format='%s %ae %ce'`);
    expect(stdout).toBe(`run ${user.email} ${user.email}\n`);
    const { id: computerId } = (await apps.send<{ id: string }>('POST', `${apps.space}/computers`, {})).body;
    expect(await apps.send('POST', `/api/apps/${id}/process/set-computer`, { computerId })).toMatchObject({
      status: 409,
      body: { code: 'APP_COMPUTER_FIXED' },
    });
  });
});

if (usable.length === 0) {
  it('Skipped: no driver is available here', () => expect(usable).toEqual([]));
}
