import { HostClient } from '../hostClient.ts';
import type { LiveHost } from '../liveComputers.ts';
import type { ComputerMetrics } from '../types.ts';
import { type ComputerEndpoint, Requests } from './requests.ts';

/** A host in another process, reached by the address that it announces. */
export class RemoteHost implements LiveHost {
  readonly #address: string;
  readonly #tokenFor: (computerId: string) => Promise<string>;

  constructor(address: string, tokenFor: (computerId: string) => Promise<string>) {
    this.#address = address;
    this.#tokenFor = tokenFor;
  }

  client(computerId: string): HostClient {
    return new HostClient(this.#endpointOf(computerId));
  }

  /** The host itself knows whether the computer runs. */
  files(computerId: string): Promise<HostClient> {
    return Promise.resolve(this.client(computerId));
  }

  work(computerId: string): Promise<HostClient> {
    return Promise.resolve(new HostClient(this.#endpointOf(computerId, 'work')));
  }

  metrics(computerId: string): Promise<ComputerMetrics> {
    return new Requests(this.#endpointOf(computerId)).json('GET', '/metrics');
  }

  #endpointOf(computerId: string, folder = 'computers'): ComputerEndpoint {
    const address = `${this.#address}/${folder}/${encodeURIComponent(computerId)}`;
    return { address, token: () => this.#tokenFor(computerId) };
  }
}
