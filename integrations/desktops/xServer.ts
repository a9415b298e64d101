import type { StartProcess } from '../computers/types.ts';
import type { Size } from './rfb/rfbClient.ts';

/** What of a session its X server is started with. */
export interface XServer extends Size {
  /** The session’s id, and that of the process. */
  id: string;
  /** The number in `DISPLAY`. */
  display: number;
}

/** The exit code of a start on a computer that lacks a program for it. */
export const missingProgram = 127;
/** What a clipboard may hold, either way. */
const maxCutText = 262_144;

/** Where it takes viewers, as the computer sees it. */
export function viewerSocket({ id }: Pick<XServer, 'id'>): string {
  return `/tmp/.atrium/${id}/rfb`;
}

/**
 * Starts it, and a window manager on it, and lasts as long as it does. Only the computer itself can reach its sockets.
 * An X server that was killed leaves its socket: that is removed first, so that the window manager waits for the new
 * one. One of ours that still has the display is of a session that was given up, with a host that has come back: it is
 * ended. Where the window manager ends, or cannot begin beside another, it is tried again.
 */
const script = `
for program in Xtigervnc xkbcomp; do
  command -v $program >/dev/null || { echo "$program is missing" >&2; exit ${missingProgram}; }
done
umask 077
mkdir -p /tmp/.X11-unix /tmp/.atrium "$1" && chmod 1777 /tmp/.X11-unix || exit 1
lock=$(cat "/tmp/.X$2-lock" 2>/dev/null | tr -cd 0-9)
held() { [ -n "$lock" ] && kill -0 "$lock" 2>/dev/null; }
if held && grep -qzxF ":$2" "/proc/$lock/cmdline" && grep -qF /tmp/.atrium/ "/proc/$lock/cmdline"; then
  kill -9 "$lock"
  tries=0
  while held && [ $tries -lt 250 ]; do sleep 0.02; tries=$((tries + 1)); done
fi
held || rm -f "/tmp/.X11-unix/X$2"
Xtigervnc ":$2" -geometry "$3" -depth 24 -desktop Atrium -rfbport -1 -rfbunixpath "$1/rfb" -rfbunixmode 0600 \\
  -SecurityTypes None -AlwaysShared -nolisten tcp -nolisten local -MaxCutText ${maxCutText} </dev/null &
server=$!
while [ ! -S "/tmp/.X11-unix/X$2" ] && kill -0 $server 2>/dev/null; do sleep 0.02; done
command -v openbox >/dev/null && while kill -0 $server 2>/dev/null; do
  DISPLAY=":$2" openbox
  sleep 2
done </dev/null &
wait $server
`;

/** However often it is started, it runs once. */
export function startRequest({ id, display, width, height }: XServer): StartProcess {
  const folder = viewerSocket({ id }).replace(/\/rfb$/, '');
  return {
    processId: id,
    command: ['/bin/sh', '-c', script, 'desktop', folder, String(display), `${width}x${height}`],
  };
}
