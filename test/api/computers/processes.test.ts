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

interface Event {
  event: string;
  id: string | undefined;
  data: Record<string, unknown>;
}

/** The events of a stream, as they come. */
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields: Record<string, string> = Object.fromEntries(
        block.split('\n').map((line) => line.split(/: (.*)/s, 2)),
      );
      if (fields.event !== undefined) yield { event: fields.event, id: fields.id, data: JSON.parse(fields.data ?? '') };
    }
  }
}

const asEvents = { accept: 'text/event-stream' };
const stream = (rest: string, headers: Record<string, string> = {}) =>
  computer.fetch(rest, { headers: { ...asEvents, ...headers } });
const textOf = (events: readonly Event[]) => events.map(({ data }) => data.text ?? '').join('');

const start = (body: object) => computer.expect<{ id: string; state: string }>(201, 'POST', '/processes', body);
const processOf = (id: string) => computer.expect<Record<string, unknown>>(200, 'GET', `/processes/${id}`);
const ended = (id: string) =>
  waitFor(`the end of ${id}`, async () => {
    const found = await processOf(id);
    return found.state !== 'running' && found;
  });

describe('exec', () => {
  test('A command wakes the computer, and returns both outputs and the exit code', async () => {
    const result = await computer.exec('echo out; echo err >&2; pwd; exit 3');
    expect(result).toMatchObject({ state: 'exited', exitCode: 3, signal: null, killedBy: null, truncated: false });
    expect([result.stdout, result.stderr]).toEqual(['out\n/home/user\n', 'err\n']);
    expect(result.processId).toMatch(/^prc_/);
  });

  test.each(['/exec', '/processes'])('%s refuses variables that make programs load other code', async (path) => {
    const env = { A: 'x', NODE_OPTIONS: '--require ./x', PYTHONSTARTUP: 'x', LD_AUDIT: 'x' };
    expect(await computer.expect(422, 'POST', path, { command: 'true', env })).toMatchObject({
      code: 'VARIABLE_REFUSED',
      detail: 'These variables are not allowed: NODE_OPTIONS, PYTHONSTARTUP, LD_AUDIT.',
    });
    // Inside the command, these variables are allowed.
    const said = await computer.exec('NODE_OPTIONS=--require=x sh -c "echo $NODE_OPTIONS"');
    expect(said.exitCode).toBe(0);
  });

  test('A command takes unchanged arguments, a folder, variables and input', async () => {
    const list = await computer.expect<{ stdout: string }>(200, 'POST', '/exec', {
      command: ['printf', '%s|', 'a b', '$HOME', '*'],
    });
    expect(list.stdout).toBe('a b|$HOME|*|');
    const { stdout } = await computer.exec('pwd; echo $ONE; cat', { cwd: '/tmp', env: { ONE: '1 € ' }, stdin: 'ï\n' });
    expect(stdout).toBe('/tmp\n1 €\nï\n');
  });

  test('A repeated process id runs nothing again, and is refused for another command', async () => {
    const once = { processId: 'once', command: 'echo ran >> once.txt; cat once.txt' };
    const first = await computer.expect<{ stdout: string }>(200, 'POST', '/exec', once);
    const second = await computer.expect<{ stdout: string }>(200, 'POST', '/exec', once);
    expect([first.stdout, second.stdout]).toEqual(['ran\n', 'ran\n']);
    expect((await computer.exec('cat once.txt')).stdout).toBe('ran\n');
    const other = await computer.expect(409, 'POST', '/exec', { processId: 'once', command: 'echo other' });
    expect(other).toMatchObject({ code: 'PROCESS_ID_TAKEN' });
  });

  test('422 for a process id of the kind that Atrium gives to its own processes', async () => {
    for (const processId of ['run_01JAB3C4D5E6F7G8H9JKMNPQT5-1', 'tcl_01JAB3C4D5E6F7G8H9JKMNPQT5']) {
      for (const path of ['/exec', '/processes']) {
        const refused = await computer.expect(422, 'POST', path, { processId, command: 'touch forged' });
        expect(refused).toMatchObject({ code: 'PROCESS_ID_RESERVED' });
      }
    }
    expect((await computer.exec('ls forged')).exitCode).not.toBe(0);
  });

  test('A command is killed after its time limit, with all that it has started', async () => {
    const result = await computer.exec('(sleep 300 & echo $! > child; wait)', { timeoutMs: 500 });
    expect(result).toMatchObject({ state: 'killed', killedBy: 'timeout' });
    expect((await computer.exec('kill -0 $(cat child)')).exitCode).toBe(1);
  });

  test('A long output is shortened in the middle, and says so', async () => {
    const { stdout, truncated, outputBytes } = await computer.exec(
      'echo begin; head -c 3000000 /dev/zero | tr "\\0" x; echo end',
    );
    expect([truncated, outputBytes, stdout.slice(0, 6), stdout.slice(-4)]).toEqual([
      true,
      3_000_010,
      'begin\n',
      'end\n',
    ]);
    expect(stdout.length).toBeLessThan(1_050_000);
    expect(stdout).toMatch(/\n\[\d+ bytes are left out here\]\n/);
  });

  test('Output is streamed on request', async () => {
    const response = await computer.fetch('/exec', {
      method: 'POST',
      body: { command: 'echo one; read x; echo $x >&2', stdin: 'two\n' },
      headers: asEvents,
    });
    expect(response.headers.get('content-type')).toMatch('text/event-stream');
    const all = await Array.fromAsync(eventsOf(response));
    expect(all.map(({ event, data }) => [event, data.stream, data.text])).toEqual([
      ['process', undefined, undefined],
      ['output', 'stdout', 'one\n'],
      ['output', 'stderr', 'two\n'],
      ['exit', undefined, undefined],
    ]);
    expect(all.at(-1)?.data).toEqual({ state: 'exited', exitCode: 0, signal: null, killedBy: null });
    expect(all[0]?.data.processId).toMatch(/^prc_/);
  });

  test('Bad input is refused before anything runs', async () => {
    const answers = [
      await computer.fetch('/exec', { method: 'POST', body: {} }),
      await computer.fetch('/exec', { method: 'POST', body: { command: '' } }),
      await computer.fetch('/exec', { method: 'POST', body: { command: 'true', timeoutMs: 0 } }),
      await computer.fetch('/exec', { method: 'POST', body: { command: 'true', processId: '../up' } }),
      await computer.fetch('/exec', { method: 'POST', body: { command: 'true', env: { 'A=B': '1' } } }),
      await computer.fetch('/exec', { method: 'POST', body: { command: 'true', cwd: '/absent' } }),
      await computer.fetch('/exec', { method: 'POST', body: { command: ['/absent'] } }),
    ];
    const said = await Promise.all(
      answers.map(async (answer) => [answer.status, ((await answer.json()) as { code: string }).code]),
    );
    const invalid = [400, 'INVALID_REQUEST'];
    expect(said).toEqual([
      ...[invalid, invalid, invalid, invalid, invalid],
      [422, 'CWD_NOT_FOUND'],
      [422, 'COMMAND_NOT_FOUND'],
    ]);
  });
});

describe('a process', () => {
  test('A process runs in the background, takes each input once, and is listed', async () => {
    const { id } = await start({ command: 'while read line; do echo "got $line"; done; echo over', input: true });
    const input = (body: object) => computer.fetch(`/processes/${id}/input`, { method: 'POST', body });
    expect((await input({ writer: 'me', seq: 1, text: 'one\n' })).status).toBe(204);
    expect((await input({ writer: 'me', seq: 1, text: 'one\n' })).status).toBe(204);
    expect((await input({ writer: 'me', seq: 3, text: 'three\n' })).status).toBe(409);
    expect((await input({ writer: 'me', seq: 2, base64: Buffer.from('two\n').toString('base64') })).status).toBe(204);
    expect((await input({ seq: 2, text: 'x' })).status).toBe(400);
    expect((await input({ text: 'three\n', eof: true })).status).toBe(204);
    expect(await ended(id)).toMatchObject({ state: 'exited', exitCode: 0 });
    const output = await computer.fetch(`/processes/${id}/output`);
    expect(await output.text()).toBe('got one\ngot two\ngot three\nover\n');
    expect((await input({ text: 'more' })).status).toBe(409);
    const { data } = await computer.expect<{ data: { id: string }[] }>(200, 'GET', '/processes');
    expect(data.map((one) => one.id)).toContain(id);
  });

  test('Signals reach all that a process has started', async () => {
    const { id } = await start({ command: 'sleep 300 & echo $! > pid; wait' });
    await waitFor('the child', async () => (await computer.exec('test -s pid')).exitCode === 0);
    expect(
      (await computer.fetch(`/processes/${id}/signal`, { method: 'POST', body: { signal: 'SIGTERM' } })).status,
    ).toBe(204);
    expect(await ended(id)).toMatchObject({ state: 'killed', signal: 'SIGTERM' });
    expect((await computer.exec('kill -0 $(cat pid)')).exitCode).toBe(1);
    expect(
      (await computer.fetch(`/processes/${id}/signal`, { method: 'POST', body: { signal: 'SIGNAL' } })).status,
    ).toBe(400);
  });

  test('A terminal has a size that can change', async () => {
    const { id } = await start({
      command: 'trap "stty size" WINCH; stty size; while :; do sleep 0.1; done',
      pty: { cols: 100, rows: 30 },
    });
    const seen = async (text: string) =>
      waitFor(text, async () => (await (await computer.fetch(`/processes/${id}/output`)).text()).includes(text));
    await seen('30 100');
    expect(
      (await computer.fetch(`/processes/${id}/resize`, { method: 'POST', body: { cols: 90, rows: 20 } })).status,
    ).toBe(204);
    await seen('20 90');
    expect(
      (await computer.fetch(`/processes/${id}/resize`, { method: 'POST', body: { cols: 0, rows: 20 } })).status,
    ).toBe(400);
    await computer.fetch(`/processes/${id}/signal`, { method: 'POST', body: { signal: 'SIGKILL' } });
  });
});

describe('output', () => {
  test('Output is read live, and goes on from any position, also after the end', async () => {
    const { id } = await start({ command: 'echo ä1; read x; echo "€2"; echo bad >&2; exit 4', input: true });
    const live = eventsOf(await stream(`/processes/${id}/output`));
    const first = (await live.next()).value as Event;
    expect(first).toMatchObject({ event: 'output', id: '4', data: { stream: 'stdout', position: 0, text: 'ä1\n' } });
    await computer.fetch(`/processes/${id}/input`, { method: 'POST', body: { text: '\n' } });
    const rest = await Array.fromAsync(live);
    expect(textOf(rest)).toBe('€2\nbad\n');
    expect(rest.at(-1)).toMatchObject({ event: 'exit', data: { state: 'exited', exitCode: 4 } });
    // A reader that was cut resumes with this header, as a browser does.
    const again = await Array.fromAsync(
      eventsOf(await stream(`/processes/${id}/output`, { 'last-event-id': first.id ?? '' })),
    );
    expect(textOf(again)).toBe('€2\nbad\n');
    const middle = await Array.fromAsync(eventsOf(await stream(`/processes/${id}/output?after=5`)));
    expect(middle[0]?.data).toMatchObject({ position: 5, base64: Buffer.from('€2\n').subarray(1).toString('base64') });
    const text = await computer.fetch(`/processes/${id}/output?after=4`);
    expect([await text.text(), text.headers.get('x-output-position')]).toEqual(['€2\nbad\n', '13']);
    const beyond = await computer.expect(400, 'GET', `/processes/${id}/output?after=99`);
    expect(beyond).toMatchObject({ code: 'POSITION_UNKNOWN' });
    await computer.expect(404, 'GET', '/processes/absent/output');
  });

  test('Output can be read after a stop, without waking the computer', async () => {
    const { id } = await start({ command: 'echo kept; sleep 300' });
    await waitFor('output', async () => (await processOf(id)).outputBytes === 5);
    await computer.expect(200, 'POST', '/stop');
    const look = async () => {
      expect(await processOf(id)).toMatchObject({ state: 'killed', killedBy: 'stop', outputBytes: 5 });
      const { data } = await computer.expect<{ data: { id: string; state: string }[] }>(200, 'GET', '/processes');
      expect(data).toContainEqual(expect.objectContaining({ id, state: 'killed' }));
      const text = await computer.fetch(`/processes/${id}/output?after=2`);
      expect([text.status, await text.text()]).toEqual([200, 'pt\n']);
      const all = await Array.fromAsync(eventsOf(await stream(`/processes/${id}/output`)));
      expect(textOf(all)).toBe('kept\n');
      expect(all.at(-1)).toMatchObject({ event: 'exit', data: { state: 'killed' } });
    };
    await look();
    await computer.expect(404, 'GET', '/processes/absent');
    await computer.expect(409, 'POST', `/processes/${id}/input`, { text: 'x' });
    expect(await computer.expect(200, 'GET', '')).toMatchObject({ status: 'stopped' });
    await computer.exec('true');
    await look();
  });
});

test('Strangers get 404, and viewers can only look', async () => {
  const { id } = await start({ command: 'echo mine' });
  const stranger = await product.user();
  const foreign = computerOf(stranger, computer.id, computer.user.spaceId);
  const own = computerOf(stranger, computer.id);
  for (const other of [foreign, own]) {
    await other.expect(404, 'POST', '/exec', { command: 'true' });
    await other.expect(404, 'GET', `/processes/${id}/output`);
    await other.expect(404, 'POST', `/processes/${id}/signal`, { signal: 'SIGKILL' });
  }
  const { user, token } = await buildUser(product.identity);
  await product.identity.members.add(computer.user.spaceId, user.email, 'viewer');
  const { spaceId } = computer.user;
  const viewer = computerOf(asUser(product, { id: user.id, email: user.email, token, spaceId }), computer.id);
  await viewer.expect(200, 'GET', `/processes/${id}`);
  await viewer.expect(403, 'POST', '/exec', { command: 'true' });
  await viewer.expect(403, 'POST', `/processes/${id}/input`, { text: 'x' });
  const { key } = await product.identity.keys.create(computer.user.id, { name: 'key', scopes: ['computers:read'] });
  const byKey = computerOf(asUser(product, { ...computer.user, token: key }), computer.id);
  await byKey.expect(200, 'GET', `/processes/${id}`);
  expect(await byKey.expect(403, 'POST', '/exec', { command: 'true' })).toMatchObject({ code: 'INSUFFICIENT_SCOPE' });
});

test('an API that dies loses no output and runs nothing twice', async () => {
  const { id } = await start({
    processId: 'long',
    command: 'for i in 1 2 3 4 5 6; do echo $i | tee -a counted; sleep 0.3; done',
  });
  await waitFor('the first line', async () => Number((await processOf(id)).outputBytes) > 0);
  await product.process.kill('SIGKILL');
  await product.restart();
  await start({ processId: 'long', command: 'for i in 1 2 3 4 5 6; do echo $i | tee -a counted; sleep 0.3; done' });
  const all = await Array.fromAsync(eventsOf(await stream(`/processes/${id}/output`)));
  expect(textOf(all)).toBe('1\n2\n3\n4\n5\n6\n');
  expect((await computer.exec('cat counted')).stdout).toBe('1\n2\n3\n4\n5\n6\n');
});
