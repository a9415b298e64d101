import type { Command } from 'commander';
import { lookUntil } from '../../base/async.ts';
import { counted } from '../../base/text.ts';
import { cordonHost, type Draining, drainFurther, drainHost } from '../../models/computers/draining.ts';
import { type HostUse, hostsInUse, removeHost } from '../../models/computers/removedHosts.ts';
import { columns, print } from '../support/answer.ts';
import { CommandFailure } from '../support/failure.ts';
import { withDatabase } from '../support/installation.ts';

const drainLookMs = 1_000;

/** `atrium host …`: the machines that run computers. */
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
  for (const [name, isCordoned, description, done] of [
    ['cordon', true, 'give a host no further computers', 'gets no further computers'],
    ['uncordon', false, 'give a host computers again', 'gets computers again'],
  ] as const) {
    host
      .command(`${name} <id>`)
      .description(description)
      .option('--json', 'answer in JSON')
      .action(async (id: string, _options: unknown, command: Command) => {
        await withDatabase((database) => cordonHost({ database }, id, isCordoned));
        print(command, { json: { id, isCordoned }, text: `${id} ${done}.` });
      });
  }
  host
    .command('drain <id>')
    .description('move all computers of a host to other hosts; those that run are stopped and start there again')
    .option('--wait', 'wait until the last one has left')
    .option('--json', 'answer in JSON')
    .action(async (id: string, { wait }: { wait?: boolean }, command: Command) => {
      const { left, stuck } = await drain(id, wait === true);
      if (stuck.length > 0) throw new CommandFailure(describeStuck(id, stuck));
      const text = left === 0 ? `No computer is on ${id} any more.` : `${counted(left, 'computer')} will leave ${id}.`;
      print(command, { json: { id, left }, text });
    });
  host
    .command('remove <id>')
    .description('forget a host that will not come back; its computers go on elsewhere with their saved homes')
    .option('--json', 'answer in JSON')
    .action(async (id: string, _options: unknown, command: Command) => {
      const { computers, lost } = await withDatabase((database, config) => removeHost({ database, config }, id));
      const lostText =
        lost === 0 ? '' : ` Of ${lost}, no home was saved: recover each with an empty home, or delete it.`;
      const text = `Removed ${id}. It had ${counted(computers, 'computer')}.${lostText}`;
      print(command, { json: { id, computers, lost }, text });
    });
}

function drain(id: string, waits: boolean): Promise<Draining> {
  return withDatabase(async (database, config) => {
    const begun = await drainHost({ database, config }, id);
    if (!waits || begun.left === 0) return begun;
    return lookUntil(
      () => drainFurther({ database }, id),
      ({ left }) => left === 0,
      { firstMs: drainLookMs },
    );
  });
}

function describeStuck(id: string, stuck: Draining['stuck']): string {
  const each = stuck.map((computer) => `${computer.id} (${computer.code})`).join(', ');
  return `The homes of these computers could not be saved, so they stay on ${id}: ${each}. Run the drain again later.`;
}

/** The hosts of computers for `--json`. */
export function hostsToJson(hosts: readonly HostUse[]) {
  return hosts.map(({ id, address, seenAt, computers, running, isLost, isCordoned, maxRunning, ...more }) => {
    const { cpuMilli, memoryMiB, usedMiB, labels, bases } = more;
    const capacity = { cpu: cpuMilli / 1_000, memoryMiB, usedMiB, maxRunning };
    return { id, address, seenAt, computers, running, isLost, isCordoned, ...capacity, labels, bases };
  });
}

/** The hosts of computers for people, one row each. */
export function hostsToRows(hosts: readonly HostUse[]): [id: string, detail: string][] {
  return hosts.map(
    ({ id, seenAt, computers, running, isLost, isCordoned, maxRunning, memoryMiB, usedMiB, ...more }) => {
      const seen = `${isLost ? 'silent since' : 'there,'} ${seenAt.toISOString()}`;
      const use = `${counted(computers, 'computer')}, ${running} of ${maxRunning} running`;
      const memory = `${usedMiB} of ${memoryMiB} MiB promised`;
      const notes = [
        ...(isCordoned ? ['cordoned'] : []),
        ...(more.bases.length > 0 ? ['environments'] : []),
        ...(more.bases.includes('image') ? ['images'] : []),
        ...more.labels,
      ];
      return [id, [seen, use, memory, ...notes].join(', ')];
    },
  );
}
