import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { HostClient } from '../../../integrations/computers/hostClient.ts';
import { ComputerEgress } from '../../../integrations/egress/computerEgress.ts';
import { EgressGuard } from '../../../integrations/egress/guard.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { canBeOtherUser } from '../../support/otherUser.ts';

const user = 65_534;

/** A compromised holder could put links into the folder of its user, to trick root. */
describe("a folder that belongs to a computer's user", () => {
  it('does not lead a request to the holder of another computer', async () => {
    const folder = temporaryFolder();
    const [other, own] = [join(folder, 'other.sock'), join(folder, 'own.sock')];
    const server = createServer((_req, res) => res.end(JSON.stringify({ computerId: 'cmp_other' }))).listen(other);
    await once(server, 'listening');
    symlinkSync(other, own);
    try {
      await expect(new HostClient({ socketPath: own }).status()).rejects.toMatchObject({
        code: 'COMPUTER_NOT_RUNNING',
      });
      await expect(new HostClient({ socketPath: other }).status()).resolves.toMatchObject({ computerId: 'cmp_other' });
    } finally {
      server.close();
    }
  });

  if (!canBeOtherUser) return;
  it('does not make root give its user another file when the egress socket opens', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o711);
    const [run, precious] = [join(folder, 'run'), join(folder, 'precious')];
    mkdirSync(run, { mode: 0o700 });
    chownSync(run, user, user);
    writeFileSync(precious, 'of root', { mode: 0o600 });
    const path = join(run, 'egress.sock');
    const owner = { uid: user, gid: user, draft: join(folder, '.draft') };
    await using egress = new ComputerEgress({
      guard: new EgressGuard({ allowInternal: [] }),
      ownerOf: async () => undefined,
    });
    // The links are already there when root makes the socket.
    for (const name of ['egress.sock', 'egress.sock.new']) symlinkSync(precious, join(run, name));
    await egress.open({ computerId: 'cmp_1', path, owner });
    expect(statSync(precious)).toMatchObject({ uid: 0, mode: 0o100_600 });
    expect(lstatSync(path)).toMatchObject({ uid: user });
    expect(lstatSync(path).isSocket()).toBe(true);
    // Root wrote no other name in the user's folder.
    expect(lstatSync(join(run, 'egress.sock.new')).isSymbolicLink()).toBe(true);
  });
});
