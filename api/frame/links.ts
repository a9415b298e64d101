import type { Config } from '../../config/index.ts';

/** Our own URL as clients reach it. `path` is without a leading slash. */
export function publicLink({ http }: Pick<Config, 'http'>, path: string): string {
  return new URL(path, `${http.publicUrl.replace(/\/+$/, '')}/`).href;
}
