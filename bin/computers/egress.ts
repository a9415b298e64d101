import { HostCertificates } from '../../integrations/egress/certificates.ts';
import { ComputerEgress } from '../../integrations/egress/computerEgress.ts';
import { databaseOfHost, databasePort } from '../../integrations/egress/databaseNames.ts';
import { SecretGateway } from '../../integrations/egress/secretGateway.ts';
import { Shares } from '../../integrations/egress/shares.ts';
import { findComputer } from '../../models/computers/computer.ts';
import { isConnected } from '../../models/databases/connections.ts';
import type { Services } from '../support/services.ts';

type EgressServices = Pick<
  Services,
  'config' | 'database' | 'egressGuard' | 'egressRules' | 'egressAuthorities' | 'computerSecrets' | 'tenantServer'
>;

/** Limits how fast a space may open new connections to its databases. */
const pace = { burst: 100, perSecond: 20 };

/**
 * Makes the way out for computers: it obeys the lists of their space, logs connections, and adds secrets for their
 * hosts.
 */
export function createComputerEgress({
  config,
  database,
  egressGuard,
  egressRules,
  egressAuthorities,
  computerSecrets,
  tenantServer,
}: EgressServices): ComputerEgress {
  const places = new Shares({ most: config.databases.maxSpaceConnections, ...pace });
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
      const { spaceId } = computer;
      if (!(await isConnected(database, { spaceId, serverName }))) return undefined;
      return { host: tenantServer.host, port: tenantServer.port, enter: () => places.enter(spaceId) };
    },
    takeOver: (computerId, tunnel, owner) => gateway.takeOver(computerId, tunnel, owner),
  });
}
