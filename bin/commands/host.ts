import type { Command } from 'commander';
import { hostsInUse, removeHost } from '../../models/computers/removedHosts.ts';
import { columns, print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium host list` and `atrium host remove ID`: the machines that run computers. */
export function addHost(program: Command): void {
  const host = program.command('host').description('machines that run computers');
  host
    .command('list')
    .description('show the hosts, when each was last there, and how many computers have their homes on it')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const hosts = await withDatabase((database, config) => hostsInUse({ database, config }));
      const json = hosts.map(({ id, address, seenAt, computers, isLost }) => ({
        id,
        address,
        seenAt,
        computers,
        isLost,
      }));
      const rows = hosts.map(
        ({ id, seenAt, computers, isLost }) =>
          [id, `${isLost ? 'silent since' : 'there,'} ${seenAt.toISOString()}, ${computers} computers`] as const,
      );
      print(command, { json, text: hosts.length === 0 ? 'There is no host.' : columns(rows) });
    });
  host
    .command('remove <id>')
    .description('forget a host that will not come back, with the homes of its computers')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const computers = await withDatabase((database, config) => removeHost({ database, config }, id));
      const text = `Removed ${id}. Its ${computers} computers say so, and can be recovered with an empty home, or deleted.`;
      print(command, { json: { id, computers }, text });
    });
}
