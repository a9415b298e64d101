/** What every component has, with defaults for what its manifest leaves out. */
interface CommonComponent {
  name: string;
  /** Passed to the shell. */
  command: string;
  /** Relative to the app's folder. Empty means the folder itself. */
  cwd: string;
  env: Record<string, string>;
  /** The name or id of the environment of the computer on which it runs. */
  environment?: string;
  /** Names of the space's secrets. Each becomes a variable of the same name. */
  secrets: string[];
  timeoutSeconds: number;
  retry: { attempts: number; delaySeconds: number };
  /** The maximum number of simultaneous runs. */
  concurrency: number;
  /** The default among the components of its kind. */
  isDefault: boolean;
}

/** Runs on request. */
export type ProcessComponent = CommonComponent & { kind: 'process' };

/** Runs once for each delivery. */
export type WebhookComponent = CommonComponent & { kind: 'webhook'; auth: 'signature' | 'none' };

/** Runs at the ticks of a clock. */
export type ScheduleComponent = CommonComponent & {
  kind: 'schedule';
  cron: string;
  timeZone: string;
  /** What happens to a run while the previous one has not ended. */
  overlap: 'skip' | 'queue' | 'interrupt';
  /** The maximum delay after its tick. */
  jitterSeconds: number;
};

export type WebComponent = CommonComponent & { kind: 'web'; port: number };

export type AppComponent = ProcessComponent | WebhookComponent | ScheduleComponent | WebComponent;

export interface AppManifest {
  name: string;
  components: AppComponent[];
}

/** The environment that all components name. Undefined if there is none. */
export function environmentOfAll({ components: [first, ...others] }: AppManifest): string | undefined {
  return others.every(({ environment }) => environment === first?.environment) ? first?.environment : undefined;
}

/** The schedule component with this name, if any. */
export function scheduleNamed({ components }: AppManifest, name: string): ScheduleComponent | undefined {
  return components.filter((component) => component.kind === 'schedule').find((component) => component.name === name);
}

/** The reason why a manifest cannot be used. */
export interface ManifestProblem {
  code: 'APP_MANIFEST_MISSING' | 'APP_MANIFEST_TOO_LARGE' | 'APP_MANIFEST_INVALID' | 'APP_TOO_LARGE';
  detail: string;
  /** Lines and columns count from 1. */
  faults: { line: number; column: number; detail: string }[];
}

/** Where a manifest is. `tag` identifies its bytes if they are known without reading them. */
export type ManifestSource =
  | { in: 'folder'; spaceId: string; objectKey: string; size: number; tag: string }
  | { in: 'computer'; spaceId: string; computerId: string; folder: string; path: string };

/** `same`: the bytes are those of the given tag. */
export type ManifestReading =
  | { kind: 'same' }
  | { kind: 'read'; tag: string; manifest: AppManifest }
  | { kind: 'refused'; tag: string; problem: ManifestProblem };

/** Reads manifests in place, and wakes no computer for it. */
export interface ManifestReader {
  read(source: ManifestSource, knownTag: string | undefined, signal: AbortSignal): Promise<ManifestReading>;
}

export const manifestName = 'atrium.yaml';
/** The tag of a manifest that does not exist. */
export const missingTag = 'missing';
