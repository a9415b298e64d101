import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { SignJWT } from 'jose';
import { RemoteHost } from '../../../integrations/computers/client/remoteHost.ts';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { createHostServer, type HostServer } from '../../../integrations/computers/host/server.ts';
import { HostClient } from '../../../integrations/computers/hostClient.ts';
import { positionAfter } from '../../../integrations/computers/processes/records.ts';
import type { Identity } from '../../../models/identity/index.ts';
import { buildHost, runOn, startComputer } from '../../builders/host.ts';
import { buildIdentity, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { startTcpProxy } from '../../support/tcpProxy.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const usable = drivers.filter(({ missing, options }) => missing === undefined && !('uid' in options)).slice(0, 1);
const mebibyte = 1_048_576;

/** A real host, behind the server through which other processes reach it. */
describe.each(usable)('the server of a host: $name', ({ options }) => {
  let environment: TestEnvironment;
  let identity: Identity;
  let built: Awaited<ReturnType<typeof buildHost>>;
  let served: HostServer;
  let address: string;
  let computerId: string;
  let otherId: string;
  let remote: RemoteHost;
  let client: HostClient;

  beforeAll(async () => {
    environment = await createTestEnvironment();
    identity = await buildIdentity(environment);
    built = await buildHost(options);
    ({ served, address } = await serve());
    ({ computerId } = await startComputer(built.host));
    otherId = (await startComputer(built.host)).computerId;
    remote = new RemoteHost(address, identity.hostTokens.sign);
    client = remote.client(computerId);
    const program = `require('node:net').createServer({ allowHalfOpen: true }, (s) => {
      s.on('data', (d) => s.write(d)); s.on('end', () => s.end(' bye')); }).listen(8000, () => console.log('ready'));`;
    await client.startProcess({ processId: 'prc_server', command: ['/opt/node', '-e', program] });
    for await (const _ of client.output('prc_server', { follow: true })) break;
  });
  afterAll(async () => {
    served.close();
    await built[Symbol.asyncDispose]();
    await environment.close();
  });

  async function serve() {
    const { verify } = identity.hostTokens;
    const failures: unknown[] = [];
    const made = createHostServer({ host: built.host, verify, log: (facts) => failures.push(facts) });
    await once(made.server.listen(0, '127.0.0.1'), 'listening');
    const { port } = made.server.address() as AddressInfo;
    return { served: made, address: `http://127.0.0.1:${port}`, failures };
  }

  /** Sends a request without Atrium's client. */
  async function ask(path: string, token?: string, headers: Record<string, string> = {}) {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const request = requestHttp(address, { path, headers: { ...authorization, ...headers } }).end();
    const answered = once(request, 'response');
    const upgraded = once(request, 'upgrade').then(([, socket]) => {
      socket.destroy();
      return [{ statusCode: 101 }];
    });
    const [response] = await Promise.race([answered, upgraded]);
    if (response.statusCode === 101) return { status: 101 };
    const body = await text(response);
    return { status: response.statusCode as number, type: response.headers['content-type'], body: JSON.parse(body) };
  }

  const read = async (path: string, range?: { start: number; end?: number }) => {
    const { body, ...about } = await client.readFile(path, range && { range });
    return { ...about, text: await text(body) };
  };

  describe('passes on', () => {
    it('the start, state, output, input and signals of processes', async () => {
      await expect(client.status()).resolves.toMatchObject({ computerId, generation: 1 });
      const ran = await runOn(client, 'echo out; echo err >&2; exit 3', { processId: 'prc_ran' });
      expect(ran).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exitCode: 3 });
      const again = await client.startProcess({ processId: 'prc_ran', command: 'echo out; echo err >&2; exit 3' });
      expect(again.isNew).toBe(false);
      await expect(client.startProcess({ processId: 'prc_ran', command: 'true' })).rejects.toMatchObject({
        kind: 'conflict',
        code: 'PROCESS_ID_TAKEN',
      });
      await client.startProcess({ processId: 'prc_typed', command: 'cat; sleep 300', input: true });
      await client.sendInput('prc_typed', { number: { writer: 'w', seq: 1 }, bytes: Buffer.from('typed'), eof: true });
      for await (const { payload } of client.output('prc_typed', { follow: true })) {
        expect(Buffer.from(payload).toString()).toBe('typed');
        break;
      }
      expect((await client.signalProcess('prc_typed', 'SIGKILL')).signalled).toBeGreaterThan(0);
      expect((await client.listProcesses()).map(({ processId }) => processId)).toEqual([
        'prc_typed',
        'prc_ran',
        'prc_server',
      ]);
      await expect(client.process('prc_absent')).rejects.toMatchObject({ kind: 'notFound' });
    });

    it('the screen and size of terminals', async () => {
      const command = 'read x; stty size; read x';
      await client.startProcess({ processId: 'prc_pty', command, input: true, pty: { cols: 80, rows: 24 } });
      await client.resizeProcess('prc_pty', { cols: 100, rows: 30 });
      await client.sendInput('prc_pty', { number: { writer: 'w', seq: 1 }, bytes: Buffer.from('\n') });
      const screen = await waitFor('the new size', async () => {
        const shown = await client.screen('prc_pty');
        return shown.data.includes('30 100') && shown;
      });
      expect(screen).toMatchObject({ cols: 100, rows: 30 });
      await client.signalProcess('prc_pty', 'SIGKILL');
    });

    it('files in whole and in ranges, folders, and refusals', async () => {
      const { etag } = await client.writeFile('made/ä b', Buffer.from('0123456789'), { parents: true, mode: 0o750 });
      expect(await read('made/ä b', { start: 2, end: 4 })).toMatchObject({ text: '234', size: 10, mode: 0o750, etag });
      await expect(client.statFile('made/ä b')).resolves.toMatchObject({ type: 'file', size: 10, etag });
      await client.moveFile('made/ä b', 'made/c');
      await client.makeFolder('made/folder');
      const { entries } = await client.listFiles('made');
      expect(entries.map(({ name }) => name)).toEqual(['c', 'folder']);
      await client.deleteFile('made', { recursive: true });
      await expect(client.readFile('made/c')).rejects.toMatchObject({ kind: 'notFound', code: 'FILE_NOT_FOUND' });
    });

    it('large files in both directions, and a refusal while the body is still being sent', async () => {
      const bytes = randomBytes(16 * mebibyte);
      async function* pieces() {
        for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
      }
      await client.writeFile('large', pieces());
      expect((await buffer((await client.readFile('large')).body)).equals(bytes)).toBe(true);
      await expect(client.writeFile('large', pieces(), { ifNew: true })).rejects.toMatchObject({
        code: 'PRECONDITION_FAILED',
      });
      await client.deleteFile('large');
    });

    it('an aborted write, which changes nothing', async () => {
      await client.writeFile('kept', Buffer.from('old'));
      const cut = new AbortController();
      const body = new PassThrough();
      const writing = client.writeFile('kept', body, { signal: cut.signal });
      body.write(randomBytes(300_000));
      const isBegun = async () => (await client.listFiles('.')).entries.some(({ name }) => name.startsWith('.atrium-'));
      await waitFor('the write to begin', isBegun);
      cut.abort(new Error('cut'));
      await expect(writing).rejects.toThrow('cut');
      await waitFor('the temporary file to be gone', async () => !(await isBegun()));
      expect((await read('kept')).text).toBe('old');
    });

    it('connections to ports, whose directions end separately', async () => {
      const socket = await client.dialPort(8000);
      socket.end('ping');
      expect(await text(socket)).toBe('ping bye');
      await expect(client.dialPort(8001)).rejects.toMatchObject({ kind: 'upstream', code: 'PORT_NOT_LISTENING' });
    });

    it('the metrics of a computer', async () => {
      expect((await remote.metrics(computerId)).diskBytes).toBeGreaterThanOrEqual(0);
    });

    it('the files and output of a stopped computer, which refuses new processes', async () => {
      const { computerId: id, spec } = await startComputer(built.host);
      await runOn(remote.client(id), 'echo kept > file; echo said', { processId: 'prc_said' });
      await built.host.stop(id);
      const notRunning = { kind: 'conflict', code: 'COMPUTER_NOT_RUNNING' };
      // A connection to a port does not start the sandbox for files.
      await expect(remote.client(id).dialPort(8000)).rejects.toMatchObject(notRunning);
      expect(existsSync(`${computerLayout(hostLayout(built.dir), id).run}/files.sock`)).toBe(false);
      const stopped = await remote.files(id);
      expect(await text((await stopped.readFile('file')).body)).toBe('kept\n');
      await expect(stopped.process('prc_said')).resolves.toMatchObject({ state: 'exited' });
      await expect(stopped.startProcess({ processId: 'prc_no', command: 'true' })).rejects.toMatchObject(notRunning);
      await built.host.start({ ...spec, generation: 2 });
      expect((await runOn(stopped, 'cat file')).stdout).toBe('kept\n');
      await built.host.destroy(id);
      await expect(stopped.status()).rejects.toMatchObject(notRunning);
    });
  });

  describe('credentials', () => {
    const claims = (changes: Record<string, unknown> = {}) => {
      const now = Math.floor(Date.now() / 1_000);
      const { installation } = environment.config;
      const aud = `urn:atrium:${installation}:host`;
      return { sub: computerId, iss: `urn:atrium:${installation}`, aud, iat: now, exp: now + 60, ...changes };
    };
    async function signed(payload: Record<string, unknown>, typ = 'atrium-host+jwt'): Promise<string> {
      const { id, privateKey } = await identity.signingKeys.current();
      return new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA', typ, kid: id }).sign(privateKey);
    }
    const own = () => `/computers/${computerId}/`;
    const refusal = {
      status: 401,
      type: 'application/problem+json',
      body: expect.objectContaining({ status: 401, code: 'INVALID_TOKEN' }),
    };
    const upgrade = { connection: 'Upgrade', upgrade: 'tcp' };
    const isRefused = async (token?: string) => {
      expect(await ask(own(), token)).toEqual(refusal);
      expect(await ask(`${own()}metrics`, token)).toEqual(refusal);
      expect(await ask(`${own()}ports/8000`, token, upgrade)).toEqual(refusal);
    };

    it('a token for this computer is accepted', async () => {
      expect(await ask(own(), await signed(claims()))).toMatchObject({ status: 200, body: { computerId } });
      expect(await ask(`${own()}ports/8000`, await signed(claims()), upgrade)).toEqual({ status: 101 });
    });

    it('a missing token, a forged one and one for another computer are refused', async () => {
      await isRefused();
      await isRefused('');
      await isRefused('a.b.c');
      await isRefused('x'.repeat(5_000));
      await isRefused(await identity.hostTokens.sign(otherId));
      const token = await signed(claims());
      await isRefused(`${token.slice(0, -4)}AAAA`);
    });

    it('an expired token and one with too long a lifetime are refused', async () => {
      const now = Math.floor(Date.now() / 1_000);
      await isRefused(await signed(claims({ iat: now - 70, exp: now - 10 })));
      await isRefused(await signed(claims({ iat: now - 70, exp: now + 3_600 })));
      await isRefused(await signed(claims({ iat: undefined })));
      await isRefused(await signed(claims({ exp: undefined })));
    });

    it('session tokens, API keys, and tokens of another type, audience or installation are refused', async () => {
      const { user, token } = await buildUser(identity);
      await isRefused(token);
      await isRefused((await identity.keys.create(user.id, { name: 'program' })).key);
      await isRefused(await signed(claims(), 'at+jwt'));
      await isRefused(await signed(claims({ aud: `urn:atrium:${environment.config.installation}:api` })));
      await isRefused(await signed(claims({ iss: 'urn:atrium:other' })));
    });

    it('a token for a host is refused as a session', async () => {
      const token = await identity.hostTokens.sign(computerId);
      await expect(identity.sessions.authenticate(token)).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
    });

    it('a path that leads to another computer is refused', async () => {
      const token = await signed(claims());
      for (const path of [
        `${own()}../${otherId}/`,
        `${own()}%2e%2e/${otherId}/`,
        `${own()}..%2f${otherId}`,
        `/computers/${otherId}/../${computerId}/`,
        `/computers/${computerId}%2f..%2f${otherId}/`,
        `//computers/${computerId}/`,
        `/computers/../computers/${computerId}/`,
        `http://elsewhere/computers/${computerId}/`,
        '/computers/',
        '/metrics',
      ]) {
        const { status, body } = await ask(path, token);
        expect([path, status === 401 || status === 404, body.computerId]).toEqual([path, true, undefined]);
      }
    });

    it('without a token, the id and the drivers of the host are readable', async () => {
      const { hostId, drivers: here } = built.host;
      expect(await ask('/')).toMatchObject({ status: 200, body: { hostId, drivers: here, missingDrivers: [] } });
    });

    it("a refused host token gives HOST_FAILED, since the user's own credential is not wrong", async () => {
      const wrong = new HostClient({ address: `${address}/computers/${computerId}`, token: () => 'a.b.c' });
      const failed = { kind: 'upstream', code: 'HOST_FAILED' };
      await expect(wrong.status()).rejects.toMatchObject(failed);
      await expect(wrong.dialPort(8000)).rejects.toMatchObject(failed);
    });
  });

  describe('when the connection is cut', () => {
    it('a reader continues where it was, and gets each line exactly once', async () => {
      const proxy = await startTcpProxy(() => address);
      const far = new RemoteHost(proxy.url, identity.hostTokens.sign).client(computerId);
      const command = 'for i in $(seq 1 400); do echo line $i; [ $((i % 40)) = 0 ] && read x; done';
      await far.startProcess({ processId: 'prc_lines', command, input: true });
      let seq = 0;
      let position = 0;
      let said = '';
      for await (const record of far.output('prc_lines', { follow: true })) {
        expect(record.position).toBe(position);
        position = positionAfter(record);
        if (record.kind !== 'stdout') continue;
        said += Buffer.from(record.payload);
        if (said.split('\n').length <= 40 * (seq + 1)) continue;
        seq += 1;
        proxy.cut();
        await client.sendInput('prc_lines', { number: { writer: 'w', seq }, bytes: Buffer.from('\n') });
      }
      expect(said).toBe(Array.from({ length: 400 }, (_, index) => `line ${index + 1}\n`).join(''));
      expect(proxy.connections()).toBeGreaterThan(5);
      await proxy.stop();
    });

    it('by the end of the server, connections to ports end, and computers go on', async () => {
      const second = await serve();
      const far = new RemoteHost(second.address, identity.hostTokens.sign).client(computerId);
      const socket = await far.dialPort(8000);
      const closed = once(
        socket.on('error', () => undefined),
        'close',
      );
      second.served.close();
      await closed;
      await expect(far.status()).rejects.toMatchObject({ kind: 'unavailable', code: 'HOST_LOST' });
      await expect(client.status()).resolves.toMatchObject({ computerId, generation: 1 });
      expect(second.failures).toEqual([]);
    });
  });
});

if (usable.length === 0) {
  it('the server of a host is not tested on this machine, which has no driver', () => expect(usable).toEqual([]));
}
