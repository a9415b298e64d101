/** A wrong setting, described in one line that names the variable. `atrium` prints it and exits with 1. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export function requireSetting(name: string, value: string | undefined): string {
  if (value === undefined) {
    throw new ConfigError(`${name} is not set. Set it, or run "npm start", which brings its own.`);
  }
  return value;
}

/** Requires a setting that another setting needs. */
export function requireBeside(other: string, name: string, value: string | undefined): string {
  if (value === undefined) throw new ConfigError(`${name} is not set, and ${other} needs it.`);
  return value;
}
