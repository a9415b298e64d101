import { lookUntil } from '../../base/async.ts';
import { home } from '../computers/drivers/bubblewrap/view.ts';
import type { HostClient } from '../computers/hostClient.ts';
import type { ProcessInfo, StartProcess } from '../computers/types.ts';
import { browserError, ended } from './failures.ts';
import type { BrowserSpec } from './types.ts';

/** The exit codes of the start script when it cannot start Chromium. */
const exitCodes = { missing: 127, profileInUse: 75, profileUnusable: 73 } as const;

/** The file in a profile in which Chromium writes the port and the path of its DevTools endpoint. */
export const endpointFile = 'DevToolsActivePort';

/** Paths in a profile that are not worth saving: Chromium makes them again. */
export const profileCaches = [
  'Default/Cache',
  'Default/Code Cache',
  'Default/GPUCache',
  'Default/DawnGraphiteCache',
  'Default/DawnWebGPUCache',
  'GrShaderCache',
  'GraphiteDawnCache',
  'ShaderCache',
  'component_crx_cache',
  'extensions_crx_cache',
] as const;

const cacheBytes = 64 * 1_048_576;
const proxy = 'http://127.0.0.1:3128';

/** Features that call home or cost time, and that a session does not need. */
const featuresOff = [
  'AutofillServerCommunication',
  'CertificateTransparencyComponentUpdater',
  'DialMediaRouteProvider',
  'GlobalMediaControls',
  'InterestFeedContentSuggestions',
  'MediaRouter',
  'OptimizationGuideModelDownloading',
  'OptimizationHints',
  'Translate',
  // Chromium's own pages for its address bar. They cost time and memory at each start.
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'WebUIOmniboxPopup',
];

/** Chromium still looks for updates of some of its parts. Nothing answers at this address, so it does without them. */
const noUpdates = '--component-updater=disable-pings,url-source=http://127.0.0.1:9/';

/**
 * Loopback addresses bypass the proxy, so that pages reach programs on the same computer. `<-loopback>` removes
 * Chromium's own list: it also has link-local addresses, which the proxy must see to refuse and log them.
 */
const pastProxy = '<-loopback>;localhost;*.localhost;127.0.0.0/8;[::1]';

/** `--no-sandbox`: the computer is the sandbox, and Chromium cannot make its own inside it. */
const flags = [
  '--remote-debugging-port=0',
  '--no-sandbox',
  `--proxy-server=${proxy}`,
  `--proxy-bypass-list=${pastProxy}`,
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-client-side-phishing-detection',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  noUpdates,
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-domain-reliability',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--hide-crash-restore-bubble',
  '--metrics-recording-only',
  '--no-pings',
  '--no-service-autorun',
  '--password-store=basic',
  '--force-device-scale-factor=1',
  `--disk-cache-size=${cacheBytes}`,
  `--disable-features=${featuresOff.join(',')}`,
];

/**
 * Starts Chromium and runs as long as Chromium does. A lock on the profile keeps two Chromiums apart. The script
 * removes files that a killed Chromium has left: they would stop the new one, or show the old one's port. Chromium
 * reads the folder for downloads from the XDG configuration.
 */
const script = `
for program in /usr/lib/chromium/chromium chromium chromium-browser google-chrome; do
  chromium=$(command -v "$program") && break
done
[ -n "$chromium" ] || { echo "Chromium is missing" >&2; exit ${exitCodes.missing}; }
profile=$1 downloads=$2 own=/tmp/.atrium/$3
shift 3
umask 077
mkdir -p "$profile" "$own" || exit ${exitCodes.profileUnusable}
(umask 022; mkdir -p "$downloads") || exit ${exitCodes.profileUnusable}
exec 9>"$profile/.atrium-lock" || exit ${exitCodes.profileUnusable}
flock -n 9 || exit ${exitCodes.profileInUse}
rm -f "$profile"/Singleton* "$profile/${endpointFile}" || exit ${exitCodes.profileUnusable}
escaped=$(printf %s "$downloads" | sed 's/[\\\\"$\`]/\\\\&/g')
printf 'XDG_DOWNLOAD_DIR="%s"\\n' "$escaped" >"$own/user-dirs.dirs"
export XDG_CONFIG_HOME="$own"
exec "$chromium" --user-data-dir="$profile" "$@" </dev/null
`;

const scriptName = 'browser';

/** The computer starts a process with the same id only once. */
function startRequest(spec: BrowserSpec): StartProcess {
  const { id, width, height, display } = spec;
  const isHeadless = display === undefined;
  const inHome = (folder: string) => (folder.startsWith('/') ? folder : `${home}/${folder}`);
  const folders = [inHome(spec.profileFolder), inHome(spec.downloadsFolder)];
  const own = isHeadless
    ? ['--headless', '--hide-scrollbars', '--start-fullscreen', `--screen-info={${width}x${height}}`]
    : [];
  const size = ['--window-position=0,0', `--window-size=${width},${height}`];
  return {
    processId: id,
    command: ['/bin/sh', '-c', script, scriptName, ...folders, id, ...flags, ...own, ...size, 'about:blank'],
    // Without this setting Chromium looks for a bus, and no computer has one.
    env: { DBUS_SESSION_BUS_ADDRESS: 'disabled:', ...(!isHeadless && { DISPLAY: `:${display}` }) },
  };
}

/** The browser that a process runs, with the fields that are needed to close it; undefined for any other process. */
export function startedBy({ processId, command }: ProcessInfo): BrowserSpec | undefined {
  const [, , , name, profileFolder, downloadsFolder, id] = Array.isArray(command) ? command : [];
  if (name !== scriptName || id !== processId || profileFolder === undefined || downloadsFolder === undefined) return;
  return { id, profileFolder, downloadsFolder, width: 0, height: 0 };
}

/** Chromium writes this to standard error as soon as it takes clients. */
const listening = /^DevTools listening on ws:/m;
const maxLineLength = 1_000;
const lookMs = 10;

/**
 * Starts Chromium unless it runs, and settles when it listens and has written its endpoint. Throws as `Browser.start`.
 */
export async function startChromium(
  { own }: HostClient,
  spec: BrowserSpec,
  { hasEndpoint, signal }: { hasEndpoint: () => Promise<boolean>; signal: AbortSignal },
): Promise<void> {
  await own.startProcess(startRequest(spec));
  let text = '';
  for await (const { kind, payload } of own.output(spec.id, { follow: true, signal })) {
    if (kind === 'stderr') text = text.slice(-maxLineLength) + Buffer.from(payload).toString('latin1');
    if (listening.test(text)) break;
  }
  // Chromium writes its endpoint to the file a moment later.
  const isReady = async () => {
    const { state, exitCode } = await own.process(spec.id);
    if (state !== 'running') throw startFailure(exitCode);
    return hasEndpoint();
  };
  await lookUntil(isReady, Boolean, { firstMs: lookMs, signal });
}

function startFailure(exitCode: number | null): Error {
  switch (exitCode) {
    case exitCodes.missing:
      return browserError(
        'BROWSERS_UNAVAILABLE',
        'This computer has no Chromium. The operator installs it as docs/browsers.md says.',
      );
    case exitCodes.profileInUse:
      return browserError('PROFILE_IN_USE', 'Another browser on this computer uses this profile.');
    case exitCodes.profileUnusable:
      return browserError('PROFILE_UNUSABLE', 'The folder of this profile, or of its downloads, is not writable.');
    default:
      return ended();
  }
}
