import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Host } from '../../../integrations/computers/host/host.ts';
import { computerLayout, hostLayout, rootIn } from '../../../integrations/computers/host/layout.ts';
import { readRecord } from '../../../integrations/computers/host/records.ts';
import { buildHost, computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { filling, saveHome } from '../../builders/saves.ts';
import { waitFor } from '../../support/waitFor.ts';
import { drivers } from './drivers.ts';

const [{ missing, options } = { missing: 'no driver', options: {} }] = drivers;
const { signal } = new AbortController();
const limits = { ...usualLimits, memoryMiB: 512, diskMiB: 1_024 };
const withBase = { base: 'debian', limits } as const;

describe('computers with a root file system of their own', () => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: root file systems: ${missing}\n`);
    it(`are not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }
  let built: Awaited<ReturnType<typeof buildHost>>;
  let host: Host;

  beforeAll(async () => {
    built = await buildHost({ ...options, imageMiB: 6_144 });
    host = built.host;
    expect([host.rights.noBases, host.bases]).toEqual([undefined, ['debian']]);
    // Two at once make one.
    await Promise.all([host.prepareBase('debian', signal), host.prepareBase('debian', signal)]);
  });

  afterAll(() => built?.[Symbol.asyncDispose]());

  const uidOf = (computerId: string) => readRecord(hostLayout(built.dir), computerId)?.uid ?? 0;
  const rootOf = (computerId: string) => rootIn(computerLayout(hostLayout(built.dir), computerId).home);

  it('are root inside, and nobody outside', async () => {
    const { client, computerId } = await startComputer(host, withBase);
    const { stdout } = await runOn(client, 'id -u; whoami; pwd; echo $HOME $USER; . /etc/os-release; echo $ID');
    expect(stdout).toBe('0\nroot\n/home/user\n/home/user root\ndebian\n');
    const { pid } = await client
      .startProcess({ processId: 'prc_sleep', command: 'echo $$ > pid; exec sleep 1000' })
      .then(() => runOn(client, 'sleep 0.2; cat pid').then(({ stdout: text }) => ({ pid: text.trim() })));
    expect(pid).toMatch(/^\d+$/);
    const init = readRecord(hostLayout(built.dir), computerId)?.run?.sandbox?.init.pid;
    const status = readFileSync(`/proc/${init}/status`, 'utf8');
    expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).toBe(String(uidOf(computerId)));
    expect(uidOf(computerId)).toBeGreaterThanOrEqual(2_000_000_000);
    expect(statSync(`/proc/${init}/ns/user`).ino).not.toBe(statSync('/proc/self/ns/user').ino);
  });

  it('change their system as on a machine of their own', async () => {
    const { client, computerId } = await startComputer(host, withBase);
    const commands = [
      'useradd --create-home eve && echo secret > /home/eve/file && chown eve: /home/eve/file && chmod 600 /home/eve/file',
      'su eve -c "id -un; cat /home/eve/file"',
      'sudo -n id -u',
      'mkdir /srv/data && chown 105:33 /srv/data && stat -c %u:%g /srv/data',
      'echo "#!/bin/sh\necho own" > /usr/local/bin/own && chmod +x /usr/local/bin/own && own',
      'dpkg --audit; dpkg -s sudo | grep ^Status',
      'chroot / /bin/true && echo chroot',
      'mknod /tmp/device c 1 3 2>/dev/null || echo no devices',
      'mount -t tmpfs none /mnt 2>/dev/null || echo no mounts',
      'unshare --mount true 2>/dev/null || echo no namespaces',
      'test "$(grep CapBnd /proc/self/status | cut -f2)" = "$(grep CapPrm /proc/self/status | cut -f2)" && echo bounded',
    ];
    const { stdout, stderr } = await runOn(client, commands.join('\n'));
    expect([stdout, stderr]).toEqual([
      'eve\nsecret\n0\n105:33\nown\nStatus: install ok installed\nchroot\nno devices\nno mounts\nno namespaces\nbounded\n',
      '',
    ]);
    // On the disk the files have the ids that are seen inside.
    expect(statSync(join(rootOf(computerId), 'srv', 'data'))).toMatchObject({ uid: 105, gid: 33 });
    // The volume's own folder is closed to all users of the host.
    expect(statSync(computerLayout(hostLayout(built.dir), computerId).home).mode & 0o777).toBe(0o700);
    // Changes outlive a stop. Temporary files do not.
    await runOn(client, 'echo a > /tmp/a; echo b > /var/tmp/b');
    await host.stop(computerId);
    await host.start(computerSpec({ computerId, generation: 2, ...withBase }));
    const again = await runOn(host.client(computerId), 'own; cat /var/tmp/b; ls /tmp; getent passwd eve | cut -d: -f1');
    expect(again.stdout).toBe('own\nb\neve\n');
  });

  it('run processes as the user and in the folder that their environment names', async () => {
    const { client, computerId } = await startComputer(host, withBase);
    await runOn(client, 'useradd --groups www-data eve; mkdir -m 777 /srv/work; chown eve: /home/user');
    await host.stop(computerId);
    const named = { user: 'eve', workdir: '/srv/work' };
    await host.start(computerSpec({ computerId, generation: 2, ...withBase, ...named }));
    const again = host.client(computerId);
    const { stdout } = await runOn(
      again,
      'id -un; id -Gn; pwd; echo $USER; echo x > file; stat -c %U file; grep CapEff /proc/self/status',
    );
    expect(stdout).toBe('eve\neve www-data\n/srv/work\neve\neve\nCapEff:\t0000000000000000\n');
    // It is moved to the cgroup of the computer's programs, as those of root are.
    const { stdout: cgroups } = await runOn(
      again,
      'cat /proc/self/cgroup; echo; cat /proc/$PPID/cgroup 2>/dev/null | head -0',
    );
    expect(cgroups).toContain('/work');
    expect((await runOn(again, ['id', '-un'], { cwd: '/' })).stdout).toBe('eve\n');
    expect((await runOn(again, 'tty; test -w $(tty) && echo own', { pty: { cols: 80, rows: 24 } })).exitCode).toBe(0);
    await host.stop(computerId);
    await host.start(computerSpec({ computerId, generation: 3, ...withBase, user: 'nobody-here' }));
    await expect(runOn(host.client(computerId), 'true')).rejects.toMatchObject({ code: 'USER_NOT_FOUND' });
  });

  it('have a loopback on which their programs, of any user, may listen', async () => {
    const { client } = await startComputer(host, withBase);
    expect((await runOn(client, 'cat /proc/sys/net/ipv4/ip_unprivileged_port_start')).stdout).toBe('0\n');
    const talk = `use Socket; socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, sockaddr_in(80, INADDR_LOOPBACK)) or die $!;
      listen($s, 1); socket(my $c, PF_INET, SOCK_STREAM, 0); connect($c, getsockname($s)) or die $!; print "connected"`;
    for (const before of [[], ['setpriv', '--reuid=1000', '--clear-groups']]) {
      expect(await runOn(client, [...before, 'perl', '-e', talk])).toMatchObject({ stdout: 'connected', stderr: '' });
    }
  });

  it('keep secrets of private processes from the others', async () => {
    const { client } = await startComputer(host, withBase);
    await client.startProcess({
      processId: 'prc_private',
      command: 'sleep 1000',
      env: { SECRET: 'x-marks' },
      isPrivate: true,
    });
    const { stdout } = await runOn(
      client,
      'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" | grep -c x-marks; ls -d /proc/[0-9]* | wc -l',
    );
    expect(stdout).toMatch(/^0\n/);
  });

  it('can be read and written while they are stopped', async () => {
    const { client, computerId } = await startComputer(host, withBase);
    await runOn(client, 'echo one > /home/user/one; echo conf > /etc/own.conf');
    await host.stop(computerId);
    const files = await host.files(computerId);
    const read = async (path: string) =>
      Buffer.concat(await Array.fromAsync((await files.readFile(path)).body)).toString();
    expect(await read('one')).toBe('one\n');
    expect(await read('/etc/own.conf')).toBe('conf\n');
  });

  it('are saved, moved, copied and kept within their limit like homes', async () => {
    await using other = await buildHost({ ...options, imageMiB: 6_144 });
    const { client, computerId } = await startComputer(host, withBase);
    await runOn(client, 'useradd eve; echo two > /srv/two; chown eve /srv/two; echo home > home');
    const first = await saveHome(host, computerId, 'hsv_s1');
    await runOn(client, 'echo three > /srv/three');
    const second = await saveHome(host, computerId, 'hsv_s2', 'hsv_s1');
    expect(second.bytes.length).toBeLessThan(10_000);
    expect(first.uid).toBeNull();
    const saved = { ...filling, limits, base: 'debian' } as const;
    await other.host.saves.fill(computerId, [first, second], saved);
    await other.host.start(computerSpec({ computerId, generation: 2, ...withBase }));
    const moved = await runOn(other.host.client(computerId), 'stat -c "%U %n" /srv/*; cat home; id -u');
    expect(moved.stdout).toBe('root /srv/three\neve /srv/two\nhome\n0\n');
    await host.fork(computerId, { computerId: 'cmp_forked', limits });
    await host.start(computerSpec({ computerId: 'cmp_forked', ...withBase }));
    expect((await runOn(host.client('cmp_forked'), 'cat /srv/three; whoami')).stdout).toBe('three\nroot\n');
    expect(uidOf('cmp_forked')).not.toBe(uidOf(computerId));
    const full = await runOn(client, 'head -c 2000000000 /dev/zero > /srv/large; stat -c %s /srv/large');
    expect(Number(full.stdout)).toBeLessThan(1_024 * 1_048_576);
    expect(full.stderr).toMatch(/quota|No space/i);
  });

  it('leave the limits of other computers alone when they are removed', async () => {
    const { homes } = hostLayout(built.dir);
    const [, uuid] = /uuid: (\S+)/.exec(execFileSync('btrfs', ['filesystem', 'show', homes]).toString()) ?? [];
    const counts = `/sys/fs/btrfs/${uuid}/qgroups`;
    const remove = async () => {
      const { computerId } = await startComputer(host, withBase);
      await host.destroy(computerId);
      execFileSync('btrfs', ['subvolume', 'sync', homes]);
    };
    const { client, computerId } = await startComputer(host, { limits: { ...usualLimits, diskMiB: 64 } });
    await remove();
    expect(readFileSync(join(counts, 'inconsistent'), 'utf8')).toBe('0\n');
    const { stderr } = await runOn(client, 'head -c 100000000 /dev/zero > large; sync');
    expect(stderr).toMatch(/quota/);
    // What the kernel did before, or does for another reason: then all is counted anew.
    writeFileSync(join(counts, 'drop_subtree_threshold'), '1');
    await remove();
    expect((await host.metrics(computerId)).diskBytes).toBeGreaterThan(50_000_000);
    await waitFor('right counts', () => readFileSync(join(counts, 'inconsistent'), 'utf8') === '0\n');
    writeFileSync(join(counts, 'drop_subtree_threshold'), '8');
  });

  it('replace a home, which is carried over with its files', async () => {
    const { client, computerId } = await startComputer(host, { limits });
    await runOn(
      client,
      'mkdir -p a/b; echo kept > a/b/file; ln -s a/b/file link; chmod 700 a; echo x > run; chmod 755 run',
    );
    const from = await startComputer(host, withBase);
    await runOn(from.client, 'useradd --home-dir /home/user eve; chown eve: /home/user; touch /home/user/of-image');
    const system = await saveHome(host, from.computerId, 'hsv_system');
    await host.stop(computerId);
    const before = uidOf(computerId);
    const how = { ...filling, limits, base: 'debian', replaces: true, keepsHome: true } as const;
    await host.saves.fill(computerId, [system], how);
    expect(uidOf(computerId)).not.toBe(before);
    await host.start(computerSpec({ computerId, generation: 2, ...withBase, user: 'eve' }));
    const { stdout } = await runOn(host.client(computerId), 'cat link; stat -c "%U %a %n" . a run; ls; whoami');
    expect(stdout).toBe('kept\neve 755 .\neve 700 a\neve 755 run\na\nlink\nrun\neve\n');
    const roots = await startComputer(host, withBase);
    await runOn(roots.client, 'echo mine > mine');
    await host.stop(roots.computerId);
    await host.saves.fill(roots.computerId, [system], how);
    await host.start(computerSpec({ computerId: roots.computerId, generation: 2, ...withBase, user: 'eve' }));
    expect((await runOn(host.client(roots.computerId), 'stat -c %U . mine; touch new')).stdout).toBe('eve\neve\n');
    // Once more, from one system to another.
    await host.stop(computerId);
    await host.saves.fill(computerId, [system], how);
    await host.start(computerSpec({ computerId, generation: 3, ...withBase, user: 'eve' }));
    expect((await runOn(host.client(computerId), 'cat link; stat -c %U a')).stdout).toBe('kept\neve\n');
  });

  it('cannot lead mounts astray by links', async () => {
    const { computerId } = await startComputer(host, withBase);
    await host.stop(computerId);
    const start = (generation: number) => host.start(computerSpec({ computerId, generation, ...withBase }));
    // What a tenant could do by moving the folders around the mounts.
    rmSync(join(rootOf(computerId), 'opt'), { recursive: true });
    symlinkSync('/home/user/opt', join(rootOf(computerId), 'opt'));
    rmSync(join(rootOf(computerId), 'etc', 'hostname'), { force: true });
    symlinkSync('/nowhere', join(rootOf(computerId), 'etc', 'hostname'));
    await start(2);
    const { stdout } = await runOn(host.client(computerId), 'cat /etc/hostname; readlink /opt.moved; ls -A ~');
    expect(stdout).toBe('computer\n/home/user/opt\n');
  });
});
