import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { newId } from '../../../base/ids.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { Desktop, viewerSocket } from '../../../integrations/desktops/desktop.ts';
import { runOn, startComputer } from '../../builders/host.ts';
import { type RemoteHost, startHostProcess } from '../../builders/hostProcess.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { drivers } from '../computers/drivers.ts';
import { prelude } from '../computers/escapeProbes.ts';

// Another computer cannot reach a desktop. Each computer has its own user, so it makes no difference whether both
// belong to the same tenant.

const display = 10;
const xSocket = `/tmp/.X11-unix/X${display}`;

const connects = (domain: string, address: string) =>
  `socket(my $s, ${domain}, SOCK_STREAM, 0) or stopped(); connect($s, ${address}) ? through() : stopped()`;
const toPath = (path: string) => connects('PF_UNIX', `sockaddr_un("${path}")`);
/** Tries the path below the roots of all visible processes. */
const toAnyRoot = (path: string) =>
  `for my $p (glob '/proc/[0-9]*/root${path}') { socket(my $s, PF_UNIX, SOCK_STREAM, 0); through() if connect($s, sockaddr_un($p)) } stopped()`;

describe.each(drivers.filter(({ name }) => name === 'bubblewrap, as root'))(
  'the display on $name',
  ({ missing, options }) => {
    if (missing !== undefined) {
      process.stderr.write(`\nNOT RUN: ways to a display: ${missing}\n`);
      it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
      return;
    }
    let remote: RemoteHost;
    let attacked: HostClient;
    let attacker: HostClient;
    let id: string;

    beforeAll(async () => {
      await getDesktopPrograms();
      remote = await startHostProcess(options);
      attacked = (await startComputer(remote.host)).client;
      attacker = (await startComputer(remote.host)).client;
      id = newId('desktopSession');
      await new Desktop(attacked, { id, display, width: 800, height: 600 }).start(AbortSignal.timeout(60_000));
    }, 300_000);
    afterAll(() => remote?.[Symbol.asyncDispose]());

    const perl = (code: string) => ['perl', '-e', `${prelude} ${code}`];
    const inside = async (client: HostClient, code: string) => (await runOn(client, perl(code))).stdout;

    /** Runs the code outside of any sandbox, as root. */
    async function outside(code: string): Promise<string> {
      const child = spawn('perl', perl(code).slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
      let stdout = '';
      child.stdout.on('data', (chunk: Buffer) => {
        stdout += chunk;
      });
      await once(child, 'close');
      return stdout;
    }

    it.each([
      ['the socket of X', () => xSocket],
      ['the socket of viewers', () => viewerSocket({ id })],
    ])('has %s, which only its own computer can reach', async (_name, pathOf) => {
      const path = pathOf();
      expect(await inside(attacked, toPath(path))).toBe('THROUGH\n');
      expect(await inside(attacker, toPath(path))).toMatch(/^STOPPED/);
      expect(await outside(toPath(path))).toMatch(/^STOPPED/);
      // Through the root of a process, which works for those who see the process.
      expect(await inside(attacked, toAnyRoot(path))).toBe('THROUGH\n');
      expect(await inside(attacker, toAnyRoot(path))).toMatch(/^STOPPED/);
      expect(await outside(toAnyRoot(path))).toBe('THROUGH\n');
    });

    it('listens on no port and no abstract socket, not even for its own computer', async () => {
      for (const client of [attacked, attacker]) {
        for (const port of [6_000 + display, 5_900 + display]) {
          const code = connects('PF_INET', `sockaddr_in(${port}, inet_aton("127.0.0.1"))`);
          expect(await inside(client, code)).toMatch(/^STOPPED/);
        }
        expect(await inside(client, connects('PF_UNIX', `pack("S", 1) . "\\0${xSocket}"`))).toMatch(/^STOPPED/);
      }
    });

    it('has no process that another computer can see', async () => {
      const sees = `for my $f (glob '/proc/[0-9]*/cmdline') { open(my $h, '<', $f) or next; local $/; my $t = <$h> // ''; through() if index($t, 'Xtiger' . 'vnc') >= 0 } stopped()`;
      expect(await inside(attacked, sees)).toBe('THROUGH\n');
      expect(await inside(attacker, sees)).toMatch(/^STOPPED/);
      const commands = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(commandOf);
      expect(commands.some((command) => command.includes(`/tmp/.atrium/${id}/rfb`))).toBe(true);
    });
  },
);

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}
