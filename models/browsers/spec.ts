import { downloadsFolder, profileFolder } from './folders.ts';
import type { BrowserSession } from './session.ts';

/** What its Chromium is started with, and found by. */
export function browserSpec(session: BrowserSession) {
  const { id, width, height, display } = session;
  return {
    id,
    width,
    height,
    profileFolder: profileFolder(session),
    downloadsFolder: downloadsFolder(session),
    ...(display !== null && { display }),
  };
}
