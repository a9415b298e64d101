import { z } from 'zod';
import { integer } from './kinds.ts';

export const desktopSettings = z.object({
  ATRIUM_DESKTOP_RECORDING_MAX_SECONDS: integer(1, 43_200).default(3_600),
  ATRIUM_DESKTOP_RECORDING_MAX_MIB: integer(1, 5_120).default(1_024),
});

/** Limits of one desktop recording. */
export function desktopsConfig(env: z.infer<typeof desktopSettings>) {
  return Object.freeze({
    recording: Object.freeze({
      maxSeconds: env.ATRIUM_DESKTOP_RECORDING_MAX_SECONDS,
      maxBytes: env.ATRIUM_DESKTOP_RECORDING_MAX_MIB * 1_048_576,
    }),
  });
}
