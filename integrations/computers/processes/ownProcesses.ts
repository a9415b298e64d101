/**
 * What Atrium itself runs on a computer, such as git, is kept apart from what its users run: they do not see it, it
 * takes none of their places, and no room from their logs. Its logs are large enough for all that is read at once.
 */
export const ownLimits = {
  /** Desktops and browsers are among them, as long as their sessions last. */
  maxProcesses: 32,
  /** Of those: whoever may only look keeps nobody from changing something. */
  maxLooks: 5,
  maxLogBytes: 40 * 1_048_576,
  maxDiskBytes: 80 * 1_048_576,
  maxKept: 200,
  maxKeptMs: 86_400_000,
} as const;

/** No id of a process begins with a dot. */
export function ownProcessesDir(processesDir: string): string {
  return `${processesDir}/.own`;
}
