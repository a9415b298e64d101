import type { Command } from 'commander';
import { counted } from '../../base/text.ts';
import { type HostUse, hostsInUse, removeHost } from '../../models/computers/removedHosts.ts';
import { columns, print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium host list` and `atrium host remove ID`: the machines that run computers. */
export function addHost(program: Command): void {
  const host = program.command('host').description('machines that run computers');
  host
    .command('list')
    .description('show the hosts, when each was last there, and how many computers have their homes there and run')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const hosts = await withDatabase((database, config) => hostsInUse({ database, config }));
      const text = hosts.length === 0 ? 'There is no host.' : columns(hostsToRows(hosts));
      print(command, { json: hostsToJson(hosts), text });
    });
  host
    .command('remove <id>')
    .description('forget a host that will not come back, with the homes of its computers')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const computers = await withDatabase((database, config) => removeHost({ database, config }, id));
      const text = `Removed ${id}. It had ${counted(computers, 'computer')}: recover each with an empty home, or delete it.`;
      print(command, { json: { id, computers }, text });
    });
}

/** The hosts of computers for `--json`. */
export function hostsToJson(hosts: readonly HostUse[]) {
  return hosts.map(({ id, address, seenAt, computers, running, isLost }) => {
    return { id, address, seenAt, computers, running, isLost };
  });
}

/** The hosts of computers for people, one row each. */
export function hostsToRows(hosts: readonly HostUse[]): [id: string, detail: string][] {
  return hosts.map(({ id, seenAt, computers, running, isLost }) => {
    const seen = `${isLost ? 'silent since' : 'there,'} ${seenAt.toISOString()}`;
    return [id, `${seen}, ${counted(computers, 'computer')}, ${running} running`];
  });
}
