import { desktop } from '../../workflows/desktops/desktop.ts';
import { desktopRecording } from '../../workflows/desktops/recording.ts';
import type { LauncherParts } from '../launcherKit.ts';

export function createDesktopLauncher({ kit }: LauncherParts) {
  const desktops = kit.actor(desktop, {
    inputOf: (sessionId, limits) => ({ sessionId, ...limits }),
    summary: 'Desktop session',
  });
  const recordings = kit.actor(desktopRecording, {
    inputOf: (recordingId, limits) => ({ recordingId, ...limits }),
    summary: 'Recording of a desktop',
  });
  return {
    startDesktop: desktops.tell,
    runningDesktops: desktops.running,
    startRecording: recordings.tell,
    runningRecordings: recordings.running,
  };
}
