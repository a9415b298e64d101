/** What every part of an app has that can be run, as its manifest says, with what that leaves out filled in. */
interface CommonComponent {
  name: string;
  /** For the shell. */
  command: string;
  /** Below the app's folder; empty is the folder itself. */
  cwd: string;
  env: Record<string, string>;
  /** Names of the space's secrets, which become variables of the same names. */
  secrets: string[];
  timeoutSeconds: number;
  retry: { attempts: number; delaySeconds: number };
  /** How many of its runs there may be at once. */
  concurrency: number;
  /** Among those of its kind. */
  isDefault: boolean;
}

/** Runs when somebody asks for it. */
export type ProcessComponent = CommonComponent & { kind: 'process' };

/** Runs once for each delivery. */
export type WebhookComponent = CommonComponent & { kind: 'webhook'; auth: 'signature' | 'none' };

/** Runs at the ticks of a clock. */
export type ScheduleComponent = CommonComponent & {
  kind: 'schedule';
  cron: string;
  timeZone: string;
  /** What becomes of a run while the one before has not ended. */
  overlap: 'skip' | 'queue' | 'interrupt';
  /** How much later than its tick it may run. */
  jitterSeconds: number;
};

/** Listens on a port of its computer. */
export type WebComponent = CommonComponent & { kind: 'web'; port: number };

export type AppComponent = ProcessComponent | WebhookComponent | ScheduleComponent | WebComponent;

export interface AppManifest {
  name: string;
  components: AppComponent[];
}

/** The schedule component of this name; undefined where the manifest has none. */
export function scheduleNamed({ components }: AppManifest, name: string): ScheduleComponent | undefined {
  return components.filter((component) => component.kind === 'schedule').find((component) => component.name === name);
}

/** Why a manifest cannot be used. */
export interface ManifestProblem {
  code: 'APP_MANIFEST_MISSING' | 'APP_MANIFEST_TOO_LARGE' | 'APP_MANIFEST_INVALID' | 'APP_TOO_LARGE';
  detail: string;
  /** What is wrong, and where; both count from 1. */
  faults: { line: number; column: number; detail: string }[];
}

/** Where a manifest is. `tag` names its bytes, where that is known without reading them. */
export type ManifestSource =
  | { in: 'folder'; spaceId: string; objectKey: string; size: number; tag: string }
  | { in: 'computer'; spaceId: string; computerId: string; folder: string; path: string };

/** `same`: its bytes are those of the tag that was given. */
export type ManifestReading =
  | { kind: 'same' }
  | { kind: 'read'; tag: string; manifest: AppManifest }
  | { kind: 'refused'; tag: string; problem: ManifestProblem };

/** Reads manifests where they are, and wakes nothing for it. */
export interface ManifestReader {
  read(source: ManifestSource, knownTag: string | undefined, signal: AbortSignal): Promise<ManifestReading>;
}

export const manifestName = 'atrium.yaml';
/** The tag of what is not there. */
export const missingTag = 'missing';
