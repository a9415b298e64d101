import type { HostSaves } from '../../integrations/computers/host/host.ts';
import type {
  BaseName,
  ComputerLimits,
  ComputerSpec,
  DriverName,
  HostedState,
  ImageConfig,
  RootSource,
} from '../../integrations/computers/types.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { Computers } from '../../models/computers/computers.ts';
import type { SealedSaves } from '../../models/computers/sealedSaves.ts';
import type { CommonDeps } from '../deps.ts';

/** The machine that runs computers. Every call may be repeated. */
export interface ComputerHost {
  readonly hostId: string;
  readonly drivers: readonly DriverName[];
  readonly bases: readonly RootSource[];
  start(spec: ComputerSpec): Promise<unknown>;
  stop(computerId: string, options?: { generation?: number }): Promise<void>;
  pause(computerId: string): Promise<void>;
  resume(computerId: string): Promise<void>;
  destroy(computerId: string): Promise<void>;
  fork(from: string, to: { computerId: string; limits: ComputerLimits }, signal?: AbortSignal): Promise<void>;
  inspect(computerId: string): Promise<HostedState>;
  list(): Promise<{ computerId: string; hosted: HostedState }[]>;
  prepareBase(base: BaseName, signal?: AbortSignal): Promise<void>;
  resolveImage(image: string, signal?: AbortSignal): Promise<{ digest: string; config: ImageConfig }>;
  prepareImage(image: string, signal?: AbortSignal): Promise<void>;
  readonly saves: HostSaves;
}

export interface ComputerDeps extends CommonDeps {
  computers: Computers;
}

export interface HostDeps extends ComputerDeps {
  host: ComputerHost;
  storage: ObjectStore;
  sealedSaves: SealedSaves;
  /** Variables of every process on this host. A computer's own override them. */
  environment: Readonly<Record<string, string>>;
}
