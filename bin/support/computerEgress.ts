import { HostCertificates } from '../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../integrations/egress/computerEgress.ts';
import { databaseOfHost, databasePort } from '../../integrations/egress/databaseNames.ts';
import { SecretGateway } from '../../integrations/egress/secretGateway.ts';
import { findComputer } from '../../models/computers/computer.ts';
import { isConnected } from '../../models/databases/connections.ts';
import type { Services } from './services.ts';

type EgressServices = Pick<
  Services,
  'database' | 'egressGuard' | 'egressRules' | 'egressAuthorities' | 'computerSecrets' | 'tenantServer'
>;

/** The way out of computers: by their space's lists, into its log, and with its secrets for their hosts. */
export function createComputerEgress({
  database,
  egressGuard,
  egressRules,
  egressAuthorities,
  computerSecrets,
  tenantServer,
}: EgressServices): ComputerEgress {
  let known: { certificate: string; certificates: HostCertificates } | undefined;
  const gateway = new SecretGateway({
    async certificates() {
      const authority = await egressAuthorities.signing();
      if (known?.certificate !== authority.certificate) {
        known = { certificate: authority.certificate, certificates: new HostCertificates(authority) };
      }
      return known.certificates;
    },
    placeholdersOf: (computerId) => computerSecrets.placed(computerId),
  });
  return new ComputerEgress({
    guard: egressGuard,
    async ownerOf(computerId) {
      const computer = await findComputer(database, computerId);
      return computer === undefined || computer.deletedAt !== null
        ? undefined
        : egressRules.owner(computer.spaceId, 'computer');
    },
    async ownOf(computerId, { host, port }) {
      const serverName = databaseOfHost(host);
      if (tenantServer === undefined || serverName === undefined || port !== databasePort) return undefined;
      const computer = await findComputer(database, computerId);
      if (computer === undefined || computer.deletedAt !== null) return undefined;
      const isTheirs = await isConnected(database, { spaceId: computer.spaceId, serverName });
      return isTheirs ? { host: tenantServer.host, port: tenantServer.port } : undefined;
    },
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
}
