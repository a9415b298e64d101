import type { Config } from '../../config/index.ts';

/** An address of ours as others reach it. `path` is without a leading slash. */
export function publicLink({ http }: Pick<Config, 'http'>, path: string): string {
  return new URL(path, `${http.publicUrl.replace(/\/+$/, '')}/`).href;
}
