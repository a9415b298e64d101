import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { computerLayout, hostLayout } from '../../../integrations/computers/host/layout.ts';
import { buildHost, computerSpec, runOn, startComputer, usualLimits } from '../../builders/host.ts';
import { startHostProcess } from '../../builders/hostProcess.ts';
import { allKinds, contentOf, filling } from '../../builders/saves.ts';
import { aclOf, attributeOf, setAttribute } from '../../support/attributes.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';
import { drivers } from './drivers.ts';

const [{ missing: noImage, options: withImage } = { missing: 'no driver', options: {} }] = drivers;
const withoutImage = ['bubblewrap, as root without cgroups or an image', 'bubblewrap, not as root'];
const { signal: _, ...given } = filling;

/** Without btrfs, a save is a whole home. */
describe.each(drivers.filter(({ name }) => withoutImage.includes(name)))('saves of $name', ({ missing, options }) => {
  if (missing !== undefined) {
    process.stderr.write(`\nNOT RUN: saves of homes that are folders: ${missing}\n`);
    it(`is not tested on this machine: ${missing}`, () => expect(missing).not.toBe(''));
    return;
  }

  it('are whole homes with files of all kinds, and make the same home on another host', async () => {
    await using one = await startHostProcess(options);
    await using two = await startHostProcess(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, allKinds);
    expect(await one.saves.take(computerId, 'hsv_1')).toMatchObject({ format: 'tar' });
    const file = join(one.dir, 'save');
    await one.saves.readTo(file, computerId, 'hsv_1', null);
    expect(await one.saves.kept(computerId)).toEqual([]);
    const save = { saveId: 'hsv_1', format: 'tar' as const, uid: null, homeBytes: 0, file };
    const cut = { ...save, file: join(one.dir, 'none') };
    await expect(two.saves.fillFrom(computerId, [cut], given)).rejects.toThrow('ENOENT');
    expect(await two.host.inspect(computerId)).toEqual({ state: 'absent' });
    await two.saves.fillFrom(computerId, [save], given);
    expect(contentOf(two.dir, computerId)).toBe(contentOf(one.dir, computerId));
    expect(await two.saves.changed()).toEqual([]);
    await two.host.start(computerSpec({ computerId, generation: 2 }));
    expect((await runOn(two.host.client(computerId), 'chmod 700 a/b; cat a/link')).stdout).toBe('one\n');
    const unreadable = { code: 'SAVE_UNREADABLE' };
    const other = computerSpec().computerId;
    await expect(two.saves.fillFrom(other, [{ ...save, format: 'btrfs' }], given)).rejects.toMatchObject(unreadable);
  });

  it('keep attributes, lists of rights, holes, hard links and set-user-ID bits, and no further rights', async () => {
    await using one = await startHostProcess(options);
    await using two = await startHostProcess(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, `${allKinds}; mkdir shared; echo old > shared/old; touch set; chmod 6755 set`);
    const homeOf = ({ dir }: { dir: string }) => computerLayout(hostLayout(dir), computerId).home;
    const [from, to] = [homeOf(one), homeOf(two)];
    const comment = Buffer.from('from a browser\0');
    setAttribute(join(from, 'big'), 'user.origin', comment);
    const ownRights: Parameters<typeof aclOf>[0] = [
      ['owner', 7],
      ['group', 5],
      ['others', 0],
    ];
    setAttribute(join(from, 'shared'), 'system.posix_acl_default', aclOf(ownRights));
    if (canBeOtherUser) setAttribute(join(from, 'big'), 'trusted.origin', comment);
    // Without root, tar sees only its own user.
    const named = aclOf([
      ['owner', 6],
      ['user', 4, 1_234],
      ['group', 4],
      ['mask', 4],
      ['others', 0],
    ]);
    if (options.uid === undefined) setAttribute(join(from, 'shared', 'old'), 'system.posix_acl_access', named);
    await one.saves.take(computerId, 'hsv_1');
    const file = join(one.dir, 'save');
    await one.saves.readTo(file, computerId, 'hsv_1', null);
    await two.saves.fillFrom(computerId, [{ saveId: 'hsv_1', format: 'tar', uid: null, homeBytes: 0, file }], given);
    expect(contentOf(two.dir, computerId)).toBe(contentOf(one.dir, computerId));
    for (const [path, name] of [
      ['big', 'user.origin'],
      ['shared', 'system.posix_acl_default'],
      ['shared/old', 'system.posix_acl_access'],
    ] as const) {
      expect([path, attributeOf(join(to, path), name)]).toEqual([path, attributeOf(join(from, path), name)]);
    }
    expect(attributeOf(join(to, 'big'), 'user.origin')).toEqual(comment);
    expect(attributeOf(join(to, 'big'), 'trusted.origin')).toBeUndefined();
    expect(statSync(join(to, 'holes')).blocks * 512).toBeLessThan(1_000_000);
    expect(statSync(join(to, 'hard')).nlink).toBe(2);
    expect((statSync(join(to, 'set')).mode & 0o7777).toString(8)).toBe('6755');
    expect(statSync(join(to, 'set')).uid).toBe(statSync(to).uid);
    await two.host.start(computerSpec({ computerId, generation: 2 }));
    const made = await runOn(two.host.client(computerId), 'umask 0; touch shared/new; stat -c %a shared/new');
    expect(made.stdout).toBe('640\n');
  });

  it('are needed for a home that has changed since the last one', async () => {
    await using one = await startHostProcess(options);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'mkdir folder; echo one > folder/one');
    expect(await one.saves.changed()).toEqual([computerId]);
    for (const [n, change] of ['rm folder/one', 'echo two > folder/two', 'chmod 0 folder', 'true'].entries()) {
      await one.saves.take(computerId, `hsv_${n}`);
      await one.saves.keepOnly(computerId, [`hsv_${n}`]);
      expect(await one.saves.changed()).toEqual([]);
      await runOn(client, change);
      expect([change, await one.saves.changed()]).toEqual([change, change === 'true' ? [] : [computerId]]);
    }
  });

  if (noImage !== undefined) return;
  it('fill a home with snapshots, whose next save is a whole home', async () => {
    await using one = await startHostProcess(options);
    await using two = await buildHost(withImage);
    const { client, computerId } = await startComputer(one.host);
    await runOn(client, 'echo one > one; chmod 600 one');
    await one.saves.take(computerId, 'hsv_1');
    const file = join(one.dir, 'save');
    await one.saves.readTo(file, computerId, 'hsv_1', null);
    const open = () => createReadStream(file) as AsyncIterable<Buffer>;
    await two.host.saves.fill(computerId, [{ saveId: 'hsv_1', format: 'tar', uid: null, homeBytes: 0, open }], filling);
    await two.host.start(computerSpec({ computerId, generation: 2, limits: usualLimits }));
    expect((await runOn(two.host.client(computerId), 'cat one')).stdout).toBe('one\n');
    expect(two.host.saves.kept(computerId)).toEqual([]);
    expect(await two.host.saves.changed()).toEqual([computerId]);
  });
});
