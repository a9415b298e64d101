import type { HostUse } from '../../models/computers/removedHosts.ts';

/** What is told of hosts of computers in JSON. */
export function hostsToJson(hosts: readonly HostUse[]) {
  return hosts.map(({ id, address, seenAt, computers, running, isLost }) => {
    return { id, address, seenAt, computers, running, isLost };
  });
}

/** The same for people, a row for each. */
export function hostsToRows(hosts: readonly HostUse[]): [id: string, detail: string][] {
  return hosts.map(({ id, seenAt, computers, running, isLost }) => {
    const seen = `${isLost ? 'silent since' : 'there,'} ${seenAt.toISOString()}`;
    return [id, `${seen}, ${computers} computers, ${running} of which run`];
  });
}
